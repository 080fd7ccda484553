package boot

import (
	"errors"
	"maps"
	"os"
	"testing"
)

func good() map[string]string {
	return map[string]string{EnvRank: "3", EnvSize: "8", EnvHost: "1", EnvLocalRank: "1", EnvBootFD: "5"}
}

func lookupIn(m map[string]string) func(string) (string, bool) {
	return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
}

func TestPlacementFromEnv(t *testing.T) {
	p, err := placementFromEnv(lookupIn(good()))
	if want := (placement{rank: 3, size: 8, host: 1, localRank: 1, fd: 5}); err != nil || p != want {
		t.Errorf("%+v, %v; want %+v", p, err, want)
	}
}

func TestPlacementFromEnv_malformed(t *testing.T) {
	for _, c := range []struct{ name, value string }{
		{EnvRank, "-"}, {EnvRank, ""}, {EnvRank, "x"}, {EnvRank, "-1"}, {EnvRank, "8"}, {EnvRank, "3.0"},
		{EnvRank, "99999999999999999999"}, {EnvSize, "0"}, {EnvSize, "-"}, {EnvHost, "-2"},
		{EnvLocalRank, "4"}, {EnvBootFD, "2"}, {EnvBootFD, "five"},
	} {
		m := maps.Clone(good())
		m[c.name] = c.value
		if c.value == "-" {
			delete(m, c.name)
		}
		_, err := placementFromEnv(lookupIn(m))
		var ee *EnvError
		if !errors.As(err, &ee) {
			t.Errorf("%s=%q: %v", c.name, c.value, err)
		}
	}
}

func TestPlacementFromEnv_noLauncher(t *testing.T) {
	m := good()
	delete(m, EnvBootFD)
	if _, err := placementFromEnv(lookupIn(m)); !errors.Is(err, ErrNoLauncher) {
		t.Errorf("%v", err)
	}
}

func TestBootSocket_noSocket(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, fd := range []int{int(r.Fd()), 1 << 20} {
		var ee *EnvError
		if _, err := bootSocket(fd); !errors.As(err, &ee) || ee.Name != EnvBootFD {
			t.Errorf("descriptor %d: %v", fd, err)
		}
	}
}
