package main

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// writeBlock tells about a device as ibv_devinfo does, so that what reads that
// reads this. The sections that iWARP has no use for are left out.
func writeBlock(out io.Writer, h hca) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "hca_id:\t%s\n", h.Device)
	field(&b, 1, "transport", h.Transport+" (1)")
	field(&b, 1, "fw_ver", h.FWVer)
	field(&b, 1, "node_guid", h.NodeGUID)
	field(&b, 1, "sys_image_guid", h.SysImageGUID)
	field(&b, 1, "vendor_id", fmt.Sprintf("0x%04x", h.VendorID))
	field(&b, 1, "vendor_part_id", strconv.FormatUint(h.VendorPartID, 10))
	field(&b, 1, "hw_ver", fmt.Sprintf("0x%X", h.HWVer))
	field(&b, 1, "driver", orDash(h.Driver))
	field(&b, 1, "phys_port_cnt", strconv.Itoa(h.PhysPortCnt))
	if h.Attr != nil {
		for _, a := range attributes(h.attr) {
			field(&b, 1, a.name, a.text)
		}
	}
	for _, p := range h.Ports {
		writePort(&b, p)
	}
	b.WriteByte('\n')
	_, err := out.Write(b.Bytes())
	return err
}

func writePort(b *bytes.Buffer, p port) {
	fmt.Fprintf(b, "\t\tport:\t%d\n", p.Port)
	field(b, 3, "state", fmt.Sprintf("%s (%d)", p.State, portStates[p.State]))
	if p.MaxMTU > 0 {
		field(b, 3, "max_mtu", strconv.Itoa(p.MaxMTU))
	}
	field(b, 3, "active_mtu", strconv.Itoa(p.ActiveMTU))
	field(b, 3, "link_layer", p.LinkLayer)
	for i, gid := range p.GIDs {
		field(b, 3, fmt.Sprintf("GID[%3d]", i), gid)
	}
	for _, c := range p.Carriers {
		text := strings.Join(c.QPTypes, " ")
		if !c.Offered {
			text = "no"
		}
		if c.Detail != "" {
			text += " (" + c.Detail + ")"
		}
		field(b, 3, "fabric "+c.Fabric, text)
	}
}

// Columns where the values of fields begin, by depth: those of ibv_devinfo.
const tabWidth = 8

var columns = map[int]int{1: 40, 3: 48}

// field writes one line, depth tabs deep.
func field(b *bytes.Buffer, depth int, name, value string) {
	b.WriteString(strings.Repeat("\t", depth))
	b.WriteString(name + ":")
	at := depth*tabWidth + len(name) + 1
	b.WriteString(strings.Repeat("\t", max((columns[depth]-at+tabWidth-1)/tabWidth, 1)))
	b.WriteString(value + "\n")
}
