package rdmap

import (
	"testing"

	"github.com/xwarp/xwarp/iwarp"
)

func TestCauses_areRDMAPs(t *testing.T) {
	for _, c := range []iwarp.Cause{
		LocalCatastrophic, InvalidSTag, BaseBounds, AccessRights, NotAssociated, TOWrap, CannotInvalidate,
		ProtectionUnspecified, InvalidVersion, UnexpectedOpcode, StreamCatastrophic, GlobalCatastrophic,
		OperationInvalidate, OperationUnspecified,
	} {
		if c.Layer() != iwarp.LayerRDMAP || !c.Known() {
			t.Errorf("%v (%#04x) is no cause of RDMAP", c, uint16(c))
		}
	}
}
