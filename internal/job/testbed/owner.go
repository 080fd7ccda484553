package testbed

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/xwarp/xwarp/internal/job/proc"
)

// owner names the process that a testbed belongs to. The start time tells it
// from a later process that got the same number.
type owner struct {
	pid   int
	start uint64 // in clock ticks since the machine booted
}

const namePrefix = "xwarp-"

// prefix returns the beginning of the names of all namespaces of o.
func (o owner) prefix() string {
	return namePrefix + strconv.Itoa(o.pid) + "-" + strconv.FormatUint(o.start, 36)
}

// ownerFromName returns the owner that a namespace's name tells.
func ownerFromName(name string) (owner, bool) {
	rest, ok := strings.CutPrefix(name, namePrefix)
	fields := strings.Split(rest, "-")
	if !ok || len(fields) < 3 {
		return owner{}, false
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil || pid <= 0 {
		return owner{}, false
	}
	start, err := strconv.ParseUint(fields[1], 36, 64)
	if err != nil {
		return owner{}, false
	}
	return owner{pid, start}, true
}

// alive reports whether the process still runs.
func (o owner) alive() bool {
	now, err := ownerOf(o.pid)
	return err == nil && now == o
}

// ownerOf identifies the process pid.
func ownerOf(pid int) (owner, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return owner{}, err
	}
	return parseStat(pid, stat)
}

// parseStat reads /proc/pid/stat.
func parseStat(pid int, stat []byte) (owner, error) {
	const startTime = 22 - 3 // counted from the third field
	fields := proc.Stat(stat)
	if len(fields) <= startTime {
		return owner{}, fmt.Errorf("/proc/%d/stat is too short", pid)
	}
	if state := fields[0][0]; state == 'Z' || state == 'X' {
		return owner{}, fmt.Errorf("process %d is dead", pid)
	}
	start, err := strconv.ParseUint(string(fields[startTime]), 10, 64)
	if err != nil {
		return owner{}, fmt.Errorf("/proc/%d/stat: start time: %w", pid, err)
	}
	return owner{pid, start}, nil
}
