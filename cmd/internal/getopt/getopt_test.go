package getopt

import (
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	tests := []struct{ args, valued, want string }{
		{"", "CSa", ""},
		{"-s", "CSa", "-s"},
		{"-vVd", "CSa", "-v -V -d"},
		{"-C10 -S 64", "CSa", "-C 10 -S 64"},
		{"-vC10", "CSa", "-v -C 10"},
		{"-vC 10", "CSa", "-v -C 10"},
		{"-a10.0.0.1", "CSa", "-a 10.0.0.1"},
		{"-a ::1", "CSa", "-a ::1"},
		{"--json -vd eth1 --check=eth1", "CSad", "--json -v -d eth1 --check=eth1"},
		{"-C -10 -v", "CSa", "-C -10 -v"},
		{"-C", "CSa", "-C"},
		{"- -v", "CSa", "- -v"},
		{"-v -- -vV", "CSa", "-v -- -vV"},
	}
	for _, tt := range tests {
		if got := Split(strings.Fields(tt.args), tt.valued); !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%q: got %q, want %q", tt.args, got, tt.want)
		}
	}
}
