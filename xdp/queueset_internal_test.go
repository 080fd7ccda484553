package xdp

import "testing"

// By default there is room for the chunks of all queues and for more, however many
// slots there are.
func TestQueueSetConfig_defaults(t *testing.T) {
	for _, slots := range []int{1, 2, 8, 16, 32, 64} {
		c, err := QueueSetConfig{Slots: slots}.withDefaults(slots)
		if err != nil {
			t.Errorf("%d slots: %v", slots, err)
			continue
		}
		receive := receiveLen(slots, c.RxDepth)
		part, err := setPart(0, receive, slots, slotBudget(c.TxDepth))
		if left := part - receive; err != nil || left < defaultPart(slots)/2 {
			t.Errorf("%d slots: %d MiB are left besides chunks to receive into, %v", slots, left>>20, err)
		}
	}
}
