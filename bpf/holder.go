package bpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// detach takes what a link holds off its interface, and closes the link. To close
// it is not enough: a child of this process between fork and exec has a copy of
// the descriptor, and so has a process that lists the links of this machine.
func detach(l link.Link) error {
	// Without the right to detach, or where the interface is gone, the last copy
	// that is closed does it.
	_ = l.Detach()
	return l.Close()
}

// sameProgram reports whether the program with an id has the instructions of p.
func sameProgram(p *ebpf.Program, id uint32) bool {
	other, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
	if errors.Is(err, os.ErrNotExist) {
		return true // it is gone by now, so nothing is lost by trying again
	}
	if err != nil {
		return false // we may not ask
	}
	defer other.Close()
	a, err := p.Info()
	if err != nil {
		return false
	}
	b, err := other.Info()
	return err == nil && a.Tag != "" && a.Tag == b.Tag && a.Name == b.Name
}

// holder names the process that has a descriptor of a link, as far as /proc says.
func holder(linkID uint32) string {
	if linkID == 0 {
		return ""
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fdinfo/*") // fails for a malformed pattern only
	wanted := fmt.Sprintf("link_id:\t%d\n", linkID)
	for _, file := range files {
		info, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(info), wanted) {
			continue
		}
		dir := filepath.Dir(filepath.Dir(file))
		name, _ := os.ReadFile(filepath.Join(dir, "comm")) // it may end meanwhile
		return fmt.Sprintf("process %s (%s)", filepath.Base(dir), strings.TrimSpace(string(name)))
	}
	return ""
}
