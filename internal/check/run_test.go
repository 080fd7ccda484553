package check

import (
	"fmt"
	"testing"
)

func TestRun(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			if res, err := Run(seed, Options{}); err != nil {
				t.Errorf("%v\n%v", &res.Scenario, err)
			}
		})
	}
}
