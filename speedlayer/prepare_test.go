package speedlayer

import (
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/reason"
)

// A thousand versions are taken over at once only if nothing that takes long comes before the claim.
func TestAVersionIsTakenOverBeforeItsQueryIsCompiled(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 2, sums)
	r.startLive()
	var e *Engine
	r.agent("a", func(made *Engine) {
		e = made
		e.compiles <- struct{}{} // another version is compiled all the time
	})
	kafkatest.Until(t, "the version rests", func() bool {
		return resting(e) == 1 && r.one(`SELECT count(*) FROM kappactl.position WHERE owner = 'a'`) == 2
	})
	r.produce(1, 500, 100)
	r.caughtUp()
	r.equal()
}

func TestAVersionWhoseQueryDoesNotCompileIsLeftToOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 2, sums)
	r.startLive()
	args := refArgs(r.ref)
	exec(t, r.pool, `UPDATE kappactl.version SET spec = jsonb_set(spec, '{query}', '"SELECT 1 AS k FROM nowhere"')
		WHERE job = @job AND number = @number`, args)
	r.agent("a", nil)
	r.troubled(reason.CodeStartFails, "nowhere")
	kafkatest.Until(t, "its partitions are free", func() bool {
		return r.one(`SELECT count(*) FROM kappactl.position WHERE owner IS NOT NULL`) == 0
	})
	args["spec"] = mustJSON(t, r.spec)
	exec(t, r.pool, `UPDATE kappactl.version SET spec = @spec::jsonb WHERE job = @job AND number = @number`, args)
	r.agent("b", nil)
	r.produce(0, 500, 100)
	r.caughtUp()
	r.equal()
}
