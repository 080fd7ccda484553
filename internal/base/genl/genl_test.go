package genl

import (
	"bytes"
	"errors"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Nothing but the command and the version is in the header.
func TestNewRequest(t *testing.T) {
	attr := nl.NewRtAttr(1, nl.Uint32Attr(7))
	got := NewRequest(42, 9, unix.NLM_F_ACK, attr).Serialize()[unix.SizeofNlMsghdr:]
	if want := append([]byte{9, 1, 0, 0}, attr.Serialize()...); !bytes.Equal(got, want) {
		t.Errorf("request % x, want % x", got, want)
	}
}

func TestFamily(t *testing.T) {
	if n, err := Family(nl.GENL_CTRL_NAME); n != nl.GENL_ID_CTRL || err != nil {
		t.Errorf("family of families: %#x, %v; want %#x", n, err, nl.GENL_ID_CTRL)
	}
	if n, err := Family("xwarp-none"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a family that is not there: %#x, %v; want ENOENT", n, err)
	}
}
