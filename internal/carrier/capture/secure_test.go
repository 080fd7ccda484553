package capture_test

import (
	"encoding/hex"
	"strings"
	"testing"
)

// Of an encrypted datagram is shown what is in clear: the bytes of
// docs/protocol/secure.md that TestDatagram_onTheWire of internal/carrier/secure knows.
func TestDissector_encrypted(t *testing.T) {
	needTshark(t)
	var payloads [][]byte
	for _, text := range []string{
		"a0a1a2a3300000000000000000000001a4a5a6a7a8a9aaabea21d4cffe39d3884687f6eb6fe6842c",
		"a0a1a2a3300100000000000000000000a4a5a6a7a8a9aaababcc9600ab871efa3a880858f66878c9b0632686767d55b4ae6d",
	} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		payloads = append(payloads, b)
	}
	want := []map[string]string{
		{"xwarp.secure.counter": "1", "xwarp.secure.group": "0", "xwarp.secure.tag": "ea21d4cffe39d3884687f6eb6fe6842c"},
		{"xwarp.secure.counter": "0", "xwarp.secure.group": "1", "xwarp.secure.ciphertext": "abcc9600ab871efa3a88", "xwarp.secure.instance": "0xa4a5a6a7a8a9aaab"},
	}
	infos := []string{"Encrypted, 0 bytes, number 1", "Encrypted, 10 bytes, number 0"}
	for i, r := range dissect(t, write(t, 18700, payloads), "xwarp.secure.counter", "xwarp.secure.group", "xwarp.secure.tag", "xwarp.secure.ciphertext", "xwarp.secure.instance") {
		for field, value := range want[i] {
			if r.one(field) != value {
				t.Errorf("%d: %s is %q, want %q", i, field, r[field], value)
			}
		}
		if r.one("_ws.lua.error")+r.one("_ws.malformed") != "" || !strings.HasSuffix(r.one("_ws.col.Info"), infos[i]) {
			t.Errorf("%d: %v", i, r)
		}
	}
}
