package main

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
	"github.com/xwarp/xwarp/xdp"
)

// What is said of a carrier is what opening it shows.
func TestCarriersOf_asOpened(t *testing.T) {
	n := nic{addrs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}}
	for _, c := range carriersOf(xdp.Report{}, n) {
		if c.Fabric == "xdp" { // would need a device
			continue
		}
		ctx, err := device.Open(device.Spec{Fabric: c.Fabric})
		if err != nil {
			t.Fatalf("%s: %v", c.Fabric, err)
		}
		for _, typ := range []verbs.QPType{verbs.RC, verbs.RD, verbs.UD} {
			err := createQP(ctx, typ)
			if said := slices.Contains(c.QPTypes, typ.String()); said != (err == nil) || !c.Offered {
				t.Errorf("%s: %v: said %v of %+v, but CreateQP: %v", c.Fabric, typ, said, c, err)
			}
		}
		if err := ctx.Close(); err != nil {
			t.Error(err)
		}
	}
}

func createQP(ctx *verbs.Context, typ verbs.QPType) error {
	pd, err := ctx.AllocPD()
	if err != nil {
		return err
	}
	cq, err := ctx.CreateCQ(verbs.CQInit{})
	if err != nil {
		return err
	}
	_, err = pd.CreateQP(verbs.QPInit{Type: typ, SendCQ: cq, RecvCQ: cq})
	return err
}
