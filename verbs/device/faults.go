package device

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/xwarp/xwarp/internal/carrier/fault"
)

// Faults says what is to go wrong with datagrams that are sent: probabilities from 0
// to 1. Its zero value is none.
type Faults = fault.Config

// ParseFaults reads Spec.Faults from words of the form name=probability with
// commas between them, such as "loss=0.01,dup=0.001": loss, dup (sent twice),
// reorder and corrupt. An empty string means none. Its error says what is wrong with which
// word.
func ParseFaults(s string) (c Faults, err error) {
	if s == "" {
		return c, nil
	}
	for word := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(word, "=")
		into := map[string]*float64{"loss": &c.Loss, "dup": &c.Dup, "reorder": &c.Reorder, "corrupt": &c.Corrupt}[name]
		if into == nil {
			return Faults{}, fmt.Errorf("device: no fault is called %.32q: use loss, dup, reorder and corrupt", name)
		}
		p, err := strconv.ParseFloat(value, 64)
		if err != nil || !(p >= 0 && p <= 1) { // written so that NaN is refused
			return Faults{}, fmt.Errorf("device: %.32q: want a probability from 0 to 1, as in loss=0.01", word)
		}
		*into = p
	}
	return c, nil
}
