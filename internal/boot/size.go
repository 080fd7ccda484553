package boot

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseSize reads a number of bytes with an optional unit of 1024 (k), its
// square (m) or its cube (g), as variables of the environment hold it.
func ParseSize(s string) (int, error) {
	shift := 0
	digits := s
	if i := strings.IndexAny(s, "kKmMgG"); i >= 0 && i == len(s)-1 {
		digits, shift = s[:i], map[byte]int{'k': 10, 'm': 20, 'g': 30}[s[i]|0x20]
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n<<shift > 1<<40 {
		return 0, fmt.Errorf("%.32q: want a number of bytes, such as 4096, 16k or 256m", s)
	}
	return int(n << shift), nil
}
