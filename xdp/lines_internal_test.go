package xdp

import "testing"

// By default there is room for the chunks of all queues and for more, however many
// seats there are.
func TestLinesConfig_defaults(t *testing.T) {
	for _, seats := range []int{1, 2, 8, 16, 32, 64} {
		c, err := LinesConfig{Seats: seats}.withDefaults(seats)
		if err != nil {
			t.Errorf("%d seats: %v", seats, err)
			continue
		}
		if left := c.Part - receiveLen(seats, c.RxDepth); left < defaultPart(seats)/2 {
			t.Errorf("%d seats: %d MiB are left besides chunks to receive into", seats, left>>20)
		}
	}
}
