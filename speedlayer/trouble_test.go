package speedlayer

import (
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// trouble is what an agent has written beside the version that fails; zero when nothing is.
func (r *rig) trouble() (found reason.Reason) {
	r.t.Helper()
	rows, err := r.pool.Query(r.t.Context(), `SELECT trouble FROM kappactl.pace WHERE trouble <> '{}' AND at > clock_timestamp() - interval '5 s'`)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&found); err != nil {
			r.t.Fatal(err)
		}
	}
	return found
}

// troubled waits until an agent has written that something fails, for the cause that contains words.
func (r *rig) troubled(code reason.Code, words string) {
	r.t.Helper()
	began := time.Now()
	kafkatest.Until(r.t, "what fails is written: "+words, func() bool {
		found := r.trouble()
		return found.Code == code && strings.Contains(found.Text(), words)
	})
	if took := time.Since(began); took > time.Minute {
		r.t.Errorf("%s was written after %s", words, took)
	}
}

func TestTheCauseOfACommitThatKeepsFailingIsWrittenUntilItSucceeds(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.startLive()
	r.agent("a", nil)
	r.produce(0, 200, 5)
	r.caughtUp()
	raise := func(errcode string) string {
		return `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			RAISE 'not today' USING ERRCODE = '` + errcode + `'; END $$;
			CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON public.sums__v1 FOR EACH ROW EXECUTE FUNCTION refuse()`
	}
	const calm = `DROP FUNCTION refuse() CASCADE`
	for _, c := range []struct{ name, sabotage, repair, words string }{
		{
			"publication", `CREATE PUBLICATION all_of_it FOR TABLE public.sums__v1`, `DROP PUBLICATION all_of_it`,
			"does not have a replica identity and publishes updates (To enable updating the table, set REPLICA IDENTITY",
		},
		{"trigger", raise("P0001"), calm, "not today (SQLSTATE P0001), in PL/pgSQL function refuse()"},
		{"disk", raise("53100"), calm, "not today (SQLSTATE 53100)"},
		{"right", raise("42501"), calm, "not today (SQLSTATE 42501)"},
	} {
		exec(t, r.pool, c.sabotage, nil)
		r.produce(0, 200, 5)
		r.troubled(reason.CodeCommitFails, c.words)
		exec(t, r.pool, c.repair, nil)
		r.caughtUp()
		kafkatest.Until(t, c.name+" is over", func() bool { return r.trouble().IsZero() })
	}
	r.equal()
}

// TestRowsThatATriggerRefusesStopOnlyTheirPartition: they were in a batch with those of the other partitions, which waited for them.
func TestRowsThatATriggerRefusesStopOnlyTheirPartition(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 3, sums)
	r.startLive()
	exec(t, r.pool, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.k = 'bad' THEN RAISE 'no bad keys'; END IF; RETURN NEW; END $$;
		CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON public.sums__v1 FOR EACH ROW EXECUTE FUNCTION refuse()`, nil)
	kafkatest.Produce(t, r.brokers, r.topic, 1, `{"k":"bad","v":1}`)
	r.produce(0, 200, 5)
	r.agent("a", nil)
	at := func(partition int32) int64 {
		for _, p := range positions(t, r.pool, r.ref) {
			if p.ID == partition {
				return p.Next
			}
		}
		return -1
	}
	kafkatest.Until(t, "the first partition is read", func() bool { return at(0) == 5 })
	r.troubled(reason.CodeCommitFails, "cannot commit results of "+r.topic+"/1: no bad keys")
	for i := range 3 { // also those that come while the partition waits
		r.produce(int32(2*(i%2)), 300+i, 1)
		kafkatest.Until(t, "the other partitions go on", func() bool { return at(0)+at(2) == int64(6+i) })
	}
	if next := at(1); next != 0 {
		t.Errorf("the refused partition is at %d", next)
	}
	exec(t, r.pool, `DROP FUNCTION refuse() CASCADE`, nil)
	r.caughtUp()
	kafkatest.Until(t, "it is over", func() bool { return r.trouble().IsZero() })
	r.equal()
}

func TestATableThatIsNotAsItWasCreatedStopsItsPartitionsUntilItIsRestored(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.startLive()
	r.agent("a", nil)
	r.produce(0, 200, 5)
	r.caughtUp()
	for name, c := range map[string][2]string{
		"table":  {`ALTER TABLE public.sums__v1 RENAME TO gone`, `ALTER TABLE public.gone RENAME TO sums__v1`},
		"column": {`ALTER TABLE public.sums__v1 RENAME COLUMN k TO kk`, `ALTER TABLE public.sums__v1 RENAME COLUMN kk TO k`},
	} {
		exec(t, r.pool, c[0], nil)
		r.produce(0, 200, 5)
		if f := r.fault(0); f.Kind != job.FaultTable || !strings.Contains(f.Detail, "does not exist") {
			t.Errorf("%s: %+v", name, f)
		}
		exec(t, r.pool, c[1], nil)
		inTx(t, r.pool, func(tx *pg.Tx) error {
			_, err := Store{}.Retry(t.Context(), tx, r.ref)
			return err
		})
		r.caughtUp()
	}
	r.equal()
}

func TestRowsThatATriggerDropsAreNotTakenForStored(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, sql, drop string }{
		{"trigger", `CREATE FUNCTION drops() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.k = 'key-1' THEN RETURN NULL; END IF; RETURN NEW; END $$;
			CREATE TRIGGER drops BEFORE INSERT ON public.sums__v1 FOR EACH ROW EXECUTE FUNCTION drops()`, `DROP FUNCTION drops() CASCADE`},
		{"rule", `CREATE RULE drops AS ON INSERT TO public.sums__v1 DO INSTEAD NOTHING`, `DROP RULE drops ON public.sums__v1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, kafkatest.Fake(t), 1, sums)
			r.startLive()
			r.agent("a", nil)
			r.produce(0, 200, 50)
			r.caughtUp()
			exec(t, r.pool, c.sql, nil)
			r.produce(0, 200, 50)
			if f := r.fault(0); f.Kind != job.FaultTable || !strings.Contains(f.Detail, "were not stored: a trigger or a rule of") {
				t.Errorf("%+v", f)
			}
			exec(t, r.pool, c.drop, nil)
			inTx(t, r.pool, func(tx *pg.Tx) error {
				_, err := Store{}.Retry(t.Context(), tx, r.ref)
				return err
			})
			r.caughtUp()
			r.equal()
		})
	}
}

func TestTheCauseOfASegmentThatKeepsFailingIsWrittenUntilItSucceeds(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.produce(0, 200, 20)
	r.startReplay(10)
	exec(t, r.pool, `ALTER TABLE public.sums__v1_staging RENAME TO gone`, nil)
	r.agent("a", nil)
	r.troubled(reason.CodeSegmentFails, `relation "public.sums__v1_staging" does not exist (SQLSTATE 42P01)`)
	exec(t, r.pool, `ALTER TABLE public.gone RENAME TO sums__v1_staging`, nil)
	r.build()
	kafkatest.Until(t, "it is over", func() bool { return r.trouble().IsZero() })
	r.equal()
}

func TestTheCauseOfAnAgentThatCannotClaimIsWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.startLive()
	exec(t, r.pool, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no claims'; END $$;
		CREATE TRIGGER refuse BEFORE UPDATE ON kappactl.position FOR EACH ROW EXECUTE FUNCTION refuse()`, nil)
	r.agent("a", nil)
	r.produce(0, 200, 5)
	r.troubled(reason.CodeClaimFails, "no claims")
	exec(t, r.pool, `DROP FUNCTION refuse() CASCADE`, nil)
	r.caughtUp()
	kafkatest.Until(t, "it is over", func() bool { return r.trouble().IsZero() })
}
