package pmi

import (
	"reflect"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/job/boot"
)

func TestValues_roundTrip(t *testing.T) {
	long := strings.Repeat("\x00 \n=", 5000)
	for _, want := range []map[string]string{
		{},
		{"a": ""},
		{"a b=\n": "\xff\x00", "addr": "127.0.0.1:1", "long": long},
	} {
		var values []boot.Value
		for k, v := range want {
			values = append(values, boot.Value{Key: k, Value: []byte(v)})
		}
		for _, limit := range []int{2, 3, 64, 1 << 20} {
			var text strings.Builder
			parts := pieces(encodeValues(values), limit)
			for i, p := range parts {
				if len(p) > limit || (p[0] == pieceMore) != (i < len(parts)-1) || !word(p) {
					t.Fatalf("piece %d of %d, limit %d: %.40q", i, len(parts), limit, p)
				}
				text.WriteString(p[1:])
			}
			got := map[string]string{}
			if err := decodeValues(text.String(), got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("limit %d: %d values, %v; want %d", limit, len(got), err, len(want))
			}
		}
	}
}

func TestDecodeValues_malformed(t *testing.T) {
	for _, text := range []string{"YQ", "YQ.YQ.YQ", "!.YQ", "YQ.!", "YQ.YQ="} {
		if err := decodeValues(text, map[string]string{}); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
