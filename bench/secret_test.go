package bench

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

// The control connection of a test with encryption needs a key: ends that have the same one
// measure, and any others say on both sides what is wrong, and nothing in clear.
func TestConnect_key(t *testing.T) {
	one, other := bytes.Repeat([]byte{1}, KeyLen), bytes.Repeat([]byte{2}, KeyLen)
	secure := brief("send_lat", "udp", 8)
	secure.Secure = true
	for name, c := range map[string]struct {
		server, client []byte
		spec           Spec
		here, there    string
	}{
		"the same":    {one, one, secure, "", ""},
		"in clear":    {one, one, brief("send_lat", "udp", 8), "", ""},
		"another":     {one, other, secure, "encrypted with another secret: give both ends the same --secure-key", "encrypted with another secret: give both ends the same --secure-key"},
		"none here":   {one, nil, brief("send_lat", "udp", 8), "the other end encrypts it: give both ends the same --secure-key", "the other end of the connection does not encrypt"},
		"none there":  {nil, one, secure, "the other end of the connection does not encrypt", "the other end encrypts it: give both ends the same --secure-key"},
		"none at all": {nil, nil, secure, "--secure needs a key that both ends have", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, reports := loopback(t), make(chan error, 9)
			addr := s.serve(t, ServeConfig{Key: c.server, Report: func(err error) { reports <- err }})
			session, err := Connect(t.Context(), c.spec, ConnectConfig{Local: s.client, Addr: addr, Key: c.client})
			if c.here != "" {
				if err == nil || !strings.Contains(err.Error(), c.here) {
					t.Errorf("here: %v", err)
				}
				if c.there == "" {
					return
				}
				if err := <-reports; err == nil || !errors.Is(err, errNoHello) || !strings.Contains(err.Error(), c.there) {
					t.Errorf("there: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			check(t, session)
			if encrypts := strings.Contains(session.Carrier, "+aes-gcm"); encrypts != c.spec.Secure {
				t.Errorf("carrier %s", session.Carrier)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
			if err := <-reports; err != nil {
				t.Error(err)
			}
		})
	}
}

// A key is in a file that nobody else can read, in hexadecimal digits.
func TestReadKey(t *testing.T) {
	name := t.TempDir() + "/key"
	for _, c := range []struct {
		text string
		mode os.FileMode
		want string
	}{
		{strings.Repeat("0a", KeyLen) + "\n", 0o600, ""},
		{strings.Repeat("0a", KeyLen), 0o400, ""},
		{strings.Repeat("0a", KeyLen), 0o640, "chmod 600"},
		{strings.Repeat("0a", KeyLen-1), 0o600, "64 hexadecimal digits"},
		{strings.Repeat("0a", KeyLen) + "0a", 0o600, "64 hexadecimal digits"},
		{strings.Repeat("password", 8), 0o600, "64 hexadecimal digits"},
		{"", 0o600, "openssl rand"},
	} {
		_ = os.Remove(name) // of the case before
		if err := os.WriteFile(name, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		key, err := ReadKey(name)
		if c.want == "" && (err != nil || !bytes.Equal(key, bytes.Repeat([]byte{10}, KeyLen))) {
			t.Errorf("%q: %x, %v", c.text, key, err)
		}
		if c.want != "" && (!errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q, mode %v: %v, want %q", c.text, c.mode, err, c.want)
		}
	}
	if _, err := ReadKey(name + "none"); !errors.Is(err, ErrUsage) {
		t.Errorf("without a file: %v", err)
	}
}
