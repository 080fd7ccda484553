package testbed

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netns"

	"github.com/xwarp/xwarp/bpf"
)

// plugXDP joins the hosts by the redirect program, and by a bridge for what that
// leaves to it. The program is in generic mode: the hosts' frames come from the
// kernel's stack or from AF_XDP in copy mode, so they are socket buffers anyway. The result lives in this process: the kernel takes
// the program off when the process dies.
func (t *Testbed) plugXDP() (closer, error) {
	ns, nl, ports, err := t.plugPorts()
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	defer nl.Close()
	if err := t.addBridge(nl, ports); err != nil {
		return nil, err
	}
	for _, h := range t.Hosts {
		if err := h.Do(func() error { return offloadOff(h.Dev, segmentation()...) }); err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	sw, err := bpf.LoadSwitch(bpf.Generic)
	if err != nil {
		return nil, err
	}
	err = onNewThread(func() error {
		if err := netns.Set(ns); err != nil {
			return fmt.Errorf("entering the switch: %w", err)
		}
		for i, port := range ports {
			if err := sw.AddPort(port.Attrs().Index, t.Hosts[i].MAC); err != nil {
				return fmt.Errorf("port %s: %w", port.Attrs().Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, sw.Close())
	}
	return sw, nil
}
