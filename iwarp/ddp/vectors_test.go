package ddp

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/internal/test/vectors"
)

func TestVectors_ddp(t *testing.T) {
	for _, v := range vectors.Load(t, "ddp.json") {
		var h, want Header
		if cause, refused := v.Cause(t); refused {
			if h.Parse(v.Bytes) || uint16(BadHeader(v.Bytes)) != cause {
				t.Errorf("%s: parsed, or refused for %v", v.Name, BadHeader(v.Bytes))
			}
			continue
		}
		v.Fill(t, &want)
		if !h.Parse(v.Bytes) || h != want || h.Len() != len(v.Bytes) {
			t.Errorf("%s: parsed %+v, want %+v", v.Name, h, want)
		}
		b := make([]byte, UntaggedLen)
		if b = b[:want.Put(b)]; v.Kind != "decode" && !bytes.Equal(b, v.Bytes) {
			t.Errorf("%s: wrote % x, want % x", v.Name, b, v.Bytes)
		}
	}
}
