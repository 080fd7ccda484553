package boot

import (
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/config"
)

func good() map[string]string {
	return map[string]string{config.EnvRank: "3", config.EnvSize: "8", config.EnvHost: "1", config.EnvLocalRank: "1", config.EnvBootFD: "5"}
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
		{config.EnvRank, "-"}, {config.EnvRank, ""}, {config.EnvRank, "x"}, {config.EnvRank, "-1"}, {config.EnvRank, "8"}, {config.EnvRank, "3.0"},
		{config.EnvRank, "99999999999999999999"}, {config.EnvSize, "0"}, {config.EnvSize, "-"}, {config.EnvHost, "-2"},
		{config.EnvLocalRank, "4"}, {config.EnvBootFD, "2"}, {config.EnvBootFD, "five"},
	} {
		m := maps.Clone(good())
		m[c.name] = c.value
		if c.value == "-" {
			delete(m, c.name)
		}
		_, err := placementFromEnv(lookupIn(m))
		if _, ok := errors.AsType[*EnvError](err); !ok {
			t.Errorf("%s=%q: %v", c.name, c.value, err)
		}
	}
}

func TestPlacementFromEnv_noLauncher(t *testing.T) {
	m := good()
	delete(m, config.EnvBootFD)
	if _, err := placementFromEnv(lookupIn(m)); !errors.Is(err, ErrNoLauncher) {
		t.Errorf("%v", err)
	}
}

// What is no rank's environment is not run alone without a word.
func TestPlacementFromEnv_malformedWithoutLauncher(t *testing.T) {
	for want, env := range map[string]map[string]string{
		`XWARP_RANK is "x": want a number; start the program with xrun, or without any XWARP_RANK`:         {config.EnvRank: "x"},
		`XWARP_LOCAL_RANK is "-1": want a number`:                                                          {config.EnvLocalRank: "-1"},
		`XWARP_SIZE is "": want a number`:                                                                  {config.EnvRank: "0", config.EnvSize: ""},
		`XWARP_RANK is 5, but the job has 2 ranks; start the program with xrun, or without any XWARP_RANK`: {config.EnvRank: "5", config.EnvSize: "2"},
	} {
		_, err := placementFromEnv(lookupIn(env))
		if _, ok := errors.AsType[*EnvError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", env, err, want)
		}
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
		if _, err := bootSocket(fd); !errors.As(err, &ee) || ee.Name != config.EnvBootFD {
			t.Errorf("descriptor %d: %v", fd, err)
		}
	}
}
