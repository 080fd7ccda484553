package record

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/internal/test/vectors"
)

func TestVectors_record(t *testing.T) {
	for _, v := range vectors.Load(t, "record.json") {
		var c, want Chunk
		v.Fill(t, &want)
		if !c.Parse(v.Bytes) || c != want {
			t.Errorf("%s: parsed %+v, want %+v", v.Name, c, want)
		}
		var b [ChunkLen]byte
		if want.Put(b[:]); !bytes.Equal(b[:], v.Bytes) {
			t.Errorf("%s: wrote % x, want % x", v.Name, b, v.Bytes)
		}
	}
}
