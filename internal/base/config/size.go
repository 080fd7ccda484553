package config

import (
	"fmt"
	"strconv"
	"strings"
)

const wantSize = "a number of bytes, such as 4096, 16k or 256m"

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
		return 0, fmt.Errorf("%.32q: want %s", s, wantSize)
	}
	return int(n << shift), nil
}

// sizeText is the inverse of ParseSize.
func sizeText(n int) string {
	for _, unit := range []struct {
		shift int
		name  string
	}{{20, "m"}, {10, "k"}} {
		if n > 0 && n&(1<<unit.shift-1) == 0 {
			return strconv.Itoa(n>>unit.shift) + unit.name
		}
	}
	return strconv.Itoa(n)
}
