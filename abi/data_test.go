package abi_test

import (
	"os"
	"path/filepath"
	"testing"
)

// What programs write about datatypes, operations and collectives is what they write on MPICH.
func TestPrograms_data(t *testing.T) {
	for program, ranks := range map[string]string{"datatypes": "1", "collectives": "4"} {
		want, err := os.ReadFile(filepath.Join("testdata", program+".out"))
		if err != nil {
			t.Fatal(err)
		}
		for _, compiler := range abis() {
			t.Run(program+"/"+compiler, func(t *testing.T) {
				path := compile(t, compiler, program)
				for _, way := range [][]string{nil, {"--fabric", "udp", "--x", "XWARP_SHARED=0"}} {
					out, err := xrun(append(append([]string{"-n", ranks}, way...), path)...)
					if err != nil || out != string(want) {
						t.Errorf("xrun %v: %v; it writes\n%s\nand not\n%s", way, err, out, want)
					}
				}
			})
		}
	}
}
