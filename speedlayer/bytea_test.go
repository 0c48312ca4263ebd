package speedlayer

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestAKeyOfBytesMayBeAsLongAsAKeyOfText: its text has two digits a byte, and the digits were counted.
func TestAKeyOfBytesMayBeAsLongAsAKeyOfText(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*rig){
		"live":   func(r *rig) { r.startLive(); r.agent("a", nil) },
		"replay": func(r *rig) { r.startReplay(0); r.agent("a", nil); r.build() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, kafkatest.Fake(t), 1, `SELECT _key AS id, v FROM source`, keyed("id"))
			var records []*kgo.Record
			for _, n := range []int{0, 1, 1_500, maxKey, maxKey + 1} {
				records = append(records, &kgo.Record{Topic: r.topic, Key: bytes.Repeat([]byte("a"), n), Value: []byte(`{"k":"x","v":1}`)})
			}
			kafkatest.ProduceRecords(t, r.brokers, records)
			start(r)
			r.caughtUp()
			if diff := cmp.Diff([]string{"(0)", "(1)", "(1500)", "(2000)"}, lines(t, r.pool, `SELECT octet_length(id) FROM public.sums__v1 ORDER BY 1`)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"(4,key_too_long)"}, lines(t, r.pool, `SELECT "offset", reason FROM kappactl.dead_letter`)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
