package main

import (
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/test/testenv"
)

// Ranks that are to poll their device give right answers, however they share it, and it is
// said whether they poll.
func TestXrun_busyPoll(t *testing.T) {
	testenv.NeedRoot(t)
	for _, how := range []string{"--fabric xdp:generic --queues shared", "--fabric xdp:driver --queues steered", "--fabric xdp --queues per-rank"} {
		out, errOut, status := xrun(t, append(strings.Fields(how), "--testbed", "2", "-n", "4", "--busy-poll", "--stats", self, asRank)...)
		_, stats, _ := strings.Cut(errOut, "in calls\n")
		if status != 0 || out == "" || !strings.Contains(stats, "busy polling") {
			t.Errorf("%s: status %d, %q, %s", how, status, out, errOut)
		}
		// Where the driver has none, a line says so before.
		none := strings.Contains(stats, "no busy polling in this driver")
		if said := strings.Contains(errOut, "interrupts are used as ever"); said != none {
			t.Errorf("%s: %s", how, errOut)
		}
	}
	_, errOut, status := xrun(t, "--testbed", "2", "-n", "2", "--busy-poll", "--fabric", "udp", self, asRank)
	if status != 0 || !strings.Contains(errOut, "no busy polling on host 1: it is for AF_XDP") {
		t.Errorf("over UDP: status %d, %s", status, errOut)
	}
}
