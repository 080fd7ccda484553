package xdp

// support is since when a driver can do something, as a version of Linux.
type support struct{ major, minor int }

// always is for what every kernel has that we run on.
var always = support{5, 15}

// driverSupport is what a driver has of XDP with redirection, which AF_XDP needs, and
// since when.
type driverSupport struct {
	driver   support // driver mode
	zeroCopy support // zero value: none before Linux 6.3

	// mtu is the largest MTU with which the driver takes a program, if that is below
	// MTUSingle: a frame with its VLAN tags and checksum has to fit into its buffer.
	mtu int

	// drops says that it takes programs all the same, and drops the frames that they
	// redirect: all, or with an MTU above mtu those of that length.
	drops bool
}

// driversKnown is what is known of drivers where the kernel does not tell it, before
// Linux 6.3 (its features of XDP, Linux commit 66c0e13ad236, and the history of the
// drivers). Names are those of ethtool -i. Most of it was read and not tried: what is
// wrong here, but for drops, makes the report say too much or too little, and nothing
// else, for sockets are opened in the best mode that the kernel gives.
var driversKnown = map[string]driverSupport{
	"atlantic":   {driver: support{5, 19}},
	"bnxt_en":    {driver: always},
	"ena":        {driver: always, mtu: inPage - 22}, // ENA_XDP_MAX_MTU
	"fsl_enetc":  {driver: always},
	"hv_netvsc":  {driver: always},
	"i40e":       {driver: always, zeroCopy: always},
	"ice":        {driver: always, zeroCopy: always},
	"igb":        {driver: always, mtu: 3072 - 26}, // igb_xdp_setup
	"igc":        {driver: always, zeroCopy: always, mtu: 1500},
	"ixgbe":      {driver: always, zeroCopy: always, mtu: 3072 - 22}, // ixgbe_xdp_setup
	"ixgbevf":    {drops: true},                                      // ixgbevf_run_xdp
	"mana":       {driver: support{6, 0}, mtu: inPage - 14},          // MANA_XDP_MTU_MAX
	"mlx4_en":    {driver: support{5, 17}},
	"mlx5_core":  {driver: always, zeroCopy: always},
	"mvneta":     {driver: always},
	"mvpp2":      {driver: always},
	"nicvf":      {drops: true}, // nicvf_xdp_rx
	"qede":       {driver: always},
	"sfc":        {driver: always},
	"st_gmac":    {driver: always, zeroCopy: always, mtu: 1500},
	"tun":        {driver: always},
	"veth":       {driver: always},
	"vif":        {driver: always},
	"virtio_net": {driver: always},
	"vmxnet3":    {driver: support{6, 6}, mtu: 3072 - 14, drops: true}, // seen: what its first buffer holds
}

// inPage is what drivers have of a page of 4 KiB for a frame, beside headroom and the
// kernel's struct skb_shared_info.
const inPage = 4096 - 256 - 320

// has reports whether a kernel is new enough.
func (s support) has(release string) bool {
	return s != support{} && versionAtLeast(release, s.major, s.minor)
}

// knownOf returns the features of a driver, as far as they are known for a kernel
// that does not tell them.
func knownOf(driver, release string) (mode, zeroCopy bool) {
	k := driversKnown[driver]
	return k.driver.has(release), k.zeroCopy.has(release)
}

// dropsRedirected reports whether the driver takes programs and drops the frames that
// they redirect: in driver mode a socket would get none, or none of full length.
func (d *device) dropsRedirected() bool {
	k := driversKnown[d.driver]
	switch {
	case k.drops && k.mtu > 0:
		return d.tooLarge()
	case d.features.known:
		return d.features.flags&(featureBasic|featureRedirect) == featureBasic
	}
	return k.drops
}

// mtuDriver is mtuSingle in driver mode, as far as it is known of the driver.
func (d *device) mtuDriver() int {
	if k := driversKnown[d.driver]; k.mtu > 0 {
		return min(k.mtu, d.mtuSingle())
	}
	return d.mtuSingle()
}

// mtuZeroCopy is mtuDriver in zero-copy mode with frames of one buffer. Newer kernels want 12
// bytes more than the frame, for two VLAN tags and the checksum it seems (seen on virtio_net of Linux 7.3).
func (d *device) mtuZeroCopy() int { return min(d.mtuDriver(), d.mtuSingle()-12) }

// tooLarge reports whether the MTU is known to be one with which the driver takes no
// program.
func (d *device) tooLarge() bool {
	return driversKnown[d.driver].mtu > 0 && d.mtu > d.mtuDriver() && !d.features.multiBuffer()
}
