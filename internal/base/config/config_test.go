package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func one(name, value string) func(string) (string, bool) {
	return func(n string) (string, bool) { return value, n == name }
}

// What is read of each variable, and nothing else changes.
var reads = []struct {
	name, value string
	want        func(*Settings)
}{
	{EnvFabric, "xdp", func(s *Settings) { s.Fabric = "xdp" }},
	{EnvDevice, "eth1,eth2", func(s *Settings) { s.Device = "eth1,eth2" }},
	{EnvIPv6, "1", func(s *Settings) { s.IPv6 = true }},
	{EnvTransport, "hybrid", func(s *Settings) { s.Transport = "hybrid" }},
	{EnvBusyPoll, "1", func(s *Settings) { s.BusyPoll = true }},
	{EnvSecure, "1", func(s *Settings) { s.Secure = true }},
	{EnvABI, "off", func(s *Settings) { s.ABI = "off" }},
	{EnvBulk, "kernel", func(s *Settings) { s.Bulk = "kernel" }},
	{EnvShared, "0", func(s *Settings) { s.Shared = false }},
	{EnvShared, "1", func(*Settings) {}},
	{EnvArena, "256m", func(s *Settings) { s.Arena = 256 << 20 }},
	{EnvNetWait, "0", func(s *Settings) { s.NetWait = 0 }},
	{EnvPeerLost, "30s", func(s *Settings) { s.PeerLost = 30 * time.Second }},
	{EnvDelay, "125us", func(s *Settings) { s.DelayTarget = 125 * time.Microsecond }},
	{EnvFaults, "loss=1", func(s *Settings) { s.Faults = "loss=1" }},
	{EnvEager, "4096", func(s *Settings) { s.Eager = 4096 }},
	{EnvEager, "0", func(s *Settings) { s.Eager = -1 }},
	{EnvEagerIdle, "16K", func(s *Settings) { s.EagerIdle = 16 << 10 }},
	{EnvEagerNear, "1m", func(s *Settings) { s.EagerNear = 1 << 20 }},
	{EnvCalibrate, "0", func(s *Settings) { s.Calibrate = false }},
	{EnvRendezvous, "read", func(s *Settings) { s.Rendezvous = "read" }},
	{EnvPromote, "7", func(s *Settings) { s.Promote = 7 }},
	{EnvUnexpected, "1g", func(s *Settings) { s.Unexpected = 1 << 30 }},
	{EnvColl, "bcast=chain", func(s *Settings) { s.Algorithms = "bcast=chain" }},
	{EnvThreads, "multiple", func(s *Settings) { s.Threads = "multiple" }},
	{EnvProgress, "thread-core", func(s *Settings) { s.Progress = "thread-core" }},
	{EnvAsync, "auto", func(s *Settings) { s.Async = "auto" }},
	{EnvAsyncTime, "20ms", func(s *Settings) { s.AsyncTime = 20 * time.Millisecond }},
	{EnvStats, "1", func(s *Settings) { s.Stats = true }},
	{EnvCheck, "1", func(s *Settings) { s.Check = true }},
	{EnvGhostFailure, "fallback", func(s *Settings) { s.GhostFailure = "fallback" }},
	{EnvGhostBinding, "bytes", func(s *Settings) { s.GhostBinding = "bytes" }},
	{EnvMachine, "8/4", func(s *Settings) { s.Machine = Machine{8, 4} }},
	{EnvSlot, "a slot", func(s *Settings) { s.Slot = "a slot" }},
}

func TestRead(t *testing.T) {
	nothing := func(string) (string, bool) { return "", false }
	tried := map[string]bool{}
	for _, c := range reads {
		want, err := Read(nothing)
		if err != nil {
			t.Fatal(err)
		}
		c.want(&want)
		if got, err := Read(one(c.name, c.value)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s=%s: %+v, %v; want %+v", c.name, c.value, got, err, want)
		}
		tried[c.name] = true
	}
	for _, g := range Groups() {
		for _, v := range g.Vars {
			if v.set != nil && !tried[v.Name] {
				t.Errorf("%s is in no row of this test", v.Name)
			}
			if v.Doc == "" || v.Want == "" || v.By == "" || (v.Flag == "") != (v.Of == "") {
				t.Errorf("%+v: something is missing", v)
			}
		}
	}
}

func TestRead_default(t *testing.T) {
	got, err := Read(func(string) (string, bool) { return "", false })
	want := Settings{
		Transport: "rd", Bulk: "auto", Rendezvous: "auto", Helpers: Helpers{Threads: "single", Progress: "none", Async: "on", Ghosts: Ghosts{"abort", "rank"}}, ABI: "auto", Shared: true, Calibrate: true,
		Times: Times{NetWait: 20 * time.Second, PeerLost: time.Hour, DelayTarget: 500 * time.Microsecond, AsyncTime: time.Second},
	}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestRead_refuses(t *testing.T) {
	const wantBytes = "want a number of bytes, such as 4096, 16k or 256m"
	for _, c := range []struct{ name, value, want string }{
		{EnvIPv6, "yes", "want 0 or 1"}, {EnvShared, "", "want 0 or 1"}, {EnvBusyPoll, "2", "want 0 or 1"},
		{EnvCalibrate, "true", "want 0 or 1"}, {EnvStats, "-1", "want 0 or 1"}, {EnvCheck, "01", "want 0 or 1"},
		{EnvTransport, "tcp", "want rd, rc, ud or hybrid"}, {EnvTransport, "", "want rd, rc"},
		{EnvBulk, "queue", "want auto, frames, kernel or tcp"}, {EnvRendezvous, "Write", "want auto, write or read"},
		{EnvThreads, "many", "want single, funneled, serialized or multiple"},
		{EnvAsync, "yes", "want on, off, auto or auto-ghosts"}, {EnvAsyncTime, "1ms", "want a time of at least 10ms"},
		{EnvProgress, "core", "want none, thread or thread-core"},
		{EnvArena, "-1", wantBytes}, {EnvUnexpected, "k", wantBytes}, {EnvEagerIdle, "16kb", wantBytes + "; 0 for none"},
		{EnvEager, "many", wantBytes}, {EnvEagerNear, "99999999999999999999", wantBytes},
		{EnvPromote, "0", "want a number above 0"}, {EnvPromote, "x", "want a number above 0"},
		{EnvNetWait, "20", "want a time such as 30s or 5m, or 0"}, {EnvNetWait, "-1s", "want a time"},
		{EnvPeerLost, "999ms", "want a time of at least 1s, such as 30s or 5m"}, {EnvPeerLost, "long", "want a time"},
		{EnvDelay, "9us", "want a time from 10us to 100ms, such as 500us"}, {EnvDelay, "1s", "want a time from"},
		{EnvMachine, "8", "such as 8/4"}, {EnvMachine, "0/4", "such as 8/4"}, {EnvMachine, "4/0", "such as 8/4"},
		{EnvMachine, "a/b", "such as 8/4"}, {EnvMachine, "", "such as 8/4"},
	} {
		_, err := Read(one(c.name, c.value))
		if err == nil || !strings.HasPrefix(err.Error(), c.name+" is \""+c.value+"\": ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v; want a word on %q", c.name, c.value, err, c.want)
		}
	}
	// The others are read all the same.
	s, err := Read(func(name string) (string, bool) {
		return map[string]string{EnvTransport: "x", EnvIPv6: "1"}[name], name == EnvTransport || name == EnvIPv6
	})
	if err == nil || !s.IPv6 || s.Transport != "rd" {
		t.Errorf("beside a bad one: %+v, %v", s, err)
	}
}

func TestCheckNames(t *testing.T) {
	for env, nearest := range map[string]string{
		"XWARP_EAGR=1": EnvEager, "XWARP_eager=1": EnvEager, "xwarp_transport=rc": EnvTransport, "XWARP_PEERLOST=3s": EnvPeerLost,
		"XWARP_EAGER_IDEL=1": EnvEagerIdle, "XWARP_SHAERD=0": EnvShared, "XWARP_DELAY=1ms": "",
		"XWARP_HOME=/opt/xwarp": "", "XWARP_LOG=1": "", "XWARP_VERSION=2": "", "XWARP_": "", "EAGR=1": "", "PATH=/bin": "",
		"XWARP_EAGER=1": "", "XWARP_RANK=0": "", "XWARP_HOSTS=a": "", "XWARP_SEEDS=1": "", "XWARP_TEST_RANK=1": "", "": "",
	} {
		err := CheckNames([]string{"HOME=/root", env})
		if (err == nil) != (nearest == "") || err != nil && !strings.Contains(err.Error(), "use "+nearest+",") {
			t.Errorf("%q: %v; want a word on %q", env, err, nearest)
		}
	}
}

func TestVar(t *testing.T) {
	for name, want := range map[string]string{
		EnvTransport: "what carries messages between hosts: rd (reliable datagrams), rc (", EnvNetWait: " (default 20s)", EnvEager: " (default 16k)",
		EnvPMI: "(default auto)",
	} {
		if text := Find(name).Help(); !strings.Contains(text, want) {
			t.Errorf("%s: %s", name, text)
		}
	}
	if text := Find(EnvShared).Help(); strings.Contains(text, "default") {
		t.Errorf("the help of a switch names its default: %s", text)
	}
	if names := Find(EnvIPv6).Flags(); !slices.Equal(names, []string{"ipv6", "6"}) || Find(EnvStats).Flags() != nil {
		t.Errorf("flags %q", names)
	}
}

func TestParseSize(t *testing.T) {
	for _, s := range []string{"0", "1000", "16k", "64m", "1024m"} {
		n, err := ParseSize(s)
		if err != nil || sizeText(n) != s {
			t.Errorf("%s is %d, which is %s, %v", s, n, sizeText(n), err)
		}
	}
}

// misspelling are tests that have names on purpose which are in no table.
var misspelling = []string{"internal/base/config/config_test.go", "cmd/xrun/flags_test.go", "mpi/run_test.go"}

// Every name in the repository that begins as ours is in the table, or that of a test.
func TestNames(t *testing.T) {
	var known []string
	for _, g := range Groups() {
		for _, v := range g.Vars {
			known = append(known, v.Name)
		}
	}
	pattern, found := regexp.MustCompile(`XWARP_[A-Z0-9_]*[A-Z0-9]`), map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "lib", "include", "shared"}, name):
			return fs.SkipDir
		case slices.Contains(misspelling, strings.TrimPrefix(path, root+"/")), !d.Type().IsRegular(), slices.Contains([]string{".o", ".pgo", ".pcap", ".h"}, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, name := range pattern.FindAllString(string(text), -1) {
			if !found[name] && !strings.HasPrefix(name, testPrefix) && !slices.Contains(known, name) {
				t.Errorf("%s: %s is in no table of internal/base/config (variables of one test begin with %s)", path, name, testPrefix)
			}
			found[name] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range known {
		if !found[name] {
			t.Errorf("%s is found nowhere", name)
		}
	}
}
