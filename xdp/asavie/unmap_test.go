package asavie

import (
	"fmt"
	"slices"
	"testing"
)

const sampleMaps = `00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/program
7f0c3c000000-7f0c3c002000 rw-s 80000000 00:08 4711    socket:[4711]
7f0c3c002000-7f0c3c003000 rw-s 100000000 00:08 4711    socket:[4711]
7f0c3c003000-7f0c3c004000 rw-s 00000000 00:08 471     socket:[471]
7f0c3c004000-7f0c3c005000 rw-p 00000000 00:00 0
7fff71c00000-7fff71c21000 rw-p 00000000 00:00 0       [stack]
7f0c3c005000-7f0c3c006000 rw-s 00000000 08:02 4711    /srv/socket:[4711]
7f0c3c006000-7f0c3c007000 rw-s 00000000 08:02 4711    /a file/socket:[4711]
`

func TestMappingsOf(t *testing.T) {
	for _, test := range []struct {
		maps  string
		inode uint64
		want  []mapping
	}{
		{sampleMaps, 4711, []mapping{{0x7f0c3c000000, 0x7f0c3c002000}, {0x7f0c3c002000, 0x7f0c3c003000}}},
		{sampleMaps, 471, []mapping{{0x7f0c3c003000, 0x7f0c3c004000}}},
		{sampleMaps, 47, nil},
		{"", 1, nil},
		{"2000-1000 rw-s 0 00:08 1 socket:[1]\n", 1, nil},
		{"x-1000 rw-s 0 00:08 1 socket:[1]\n", 1, nil},
	} {
		if got := mappingsOf([]byte(test.maps), test.inode); !slices.Equal(got, test.want) {
			t.Errorf("inode %d: %x, want %x", test.inode, got, test.want)
		}
	}
}

// Whatever a name looks like, only ranges that are written as such are found.
func FuzzMappingsOf(f *testing.F) {
	f.Add([]byte(sampleMaps), uint64(4711))
	f.Fuzz(func(t *testing.T, maps []byte, inode uint64) {
		for _, m := range mappingsOf(maps, inode) {
			if m.start >= m.end {
				t.Fatalf("mapping %+v", m)
			}
		}
		own := fmt.Appendf(slices.Clone(maps), "\n1000-3000 rw-s 0 00:08 %d socket:[%d]\n", inode, inode)
		if found := mappingsOf(own, inode); !slices.Contains(found, mapping{0x1000, 0x3000}) {
			t.Fatalf("found %v", found)
		}
	})
}
