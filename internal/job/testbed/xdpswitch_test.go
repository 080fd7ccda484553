package testbed

import (
	"bytes"
	"io"
	"net"
	"os/exec"
	"testing"
)

// Kernel TCP sends packets of 64 KiB to a device with segmentation offload,
// which the redirect program cannot forward.
func TestPlugXDP_carriesKernelTCP(t *testing.T) {
	tb := open(t, Config{Switch: XDP})
	a, b := tb.Hosts[0], tb.Hosts[1]
	var l net.Listener
	if err := b.Do(func() (err error) {
		l, err = net.Listen("tcp4", b.Addr.String()+":0")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sent := bytes.Repeat([]byte("xwarp"), 1<<18)
	go func() {
		_ = a.Do(func() error {
			c, err := net.Dial("tcp4", l.Addr().String())
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write(sent)
			return err
		})
	}()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("received %d bytes, %v; want the %d sent", len(got), err, len(sent))
	}
}

func TestOffloadOff_unknownDevice(t *testing.T) {
	tb := open(t, Config{})
	if err := tb.Hosts[0].Do(func() error { return offloadOff("nosuch0", segmentation()...) }); err == nil {
		t.Error("no error")
	}
}

func TestOffloadOff_clearsEveryBit(t *testing.T) {
	tb := open(t, Config{Switch: XDP})
	if err := tb.Hosts[0].ChecksumOff(); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("ethtool"); err != nil {
		t.Skip("needs ethtool to look: apt-get install ethtool")
	}
	out, err := output(tb.Hosts[0], "ethtool", "-k", Device)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out, []byte("\ngeneric-segmentation-offload: off")) {
		t.Error("generic segmentation is on")
	}
	for _, name := range append(segmentation()[1:], "tx-checksum-ip-generic") {
		if !bytes.Contains(out, []byte("\t"+name+": off")) && !bytes.Contains(out, []byte("\n"+name+": off")) {
			t.Errorf("%s is on", name)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
