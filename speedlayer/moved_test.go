package speedlayer

import (
	"fmt"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

func TestKeysInMoreThanOnePartitionAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 3, latestOf, keyed("id"))
	var changes []change
	for i := range 400 {
		changes = append(changes, change{key: fmt.Sprintf("k%d", i), value: `{"v": 1}`, on: int32(i % 3)})
	}
	for i := range 200 { // these move, three by a tombstone
		c := change{key: fmt.Sprintf("k%d", i), value: `{"v": 2}`, on: int32((i + 1) % 3)}
		if i < 3 {
			c.value = ""
		}
		changes = append(changes, c, change{key: fmt.Sprintf("k%d", i+200), value: `{"v": 3}`, on: int32((i + 200) % 3)})
	}
	r.change(changes...)
	r.startReplay(50)
	r.agent("a", nil)
	r.staged()
	count := func(rows int64) (int64, bool) {
		n, exact, err := countMoved(t.Context(), r.pool, at(r.ref, r.layout), rows)
		if err != nil {
			t.Fatal(err)
		}
		return n, exact
	}
	if n, exact := count(movedRows); n != 200 || !exact {
		t.Errorf("%d keys moved (exact %t), want 200", n, exact)
	}
	if n, exact := count(200); n < 100 || n > 300 || exact {
		t.Errorf("by a share of the keys %d moved (exact %t), want about 200", n, exact)
	}
}
