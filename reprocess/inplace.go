package reprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// eventApplied notes keys of the job file that were put in force without a replay.
const eventApplied = "applied"

// wish is what a deployment of the live version's own hash puts in place of its spec, in the transaction that writes the view.
type wish struct {
	Spec    json.RawMessage `json:"spec"`
	Layout  json.RawMessage `json:"layout"`
	File    string          `json:"file"`
	Changed []string        `json:"changed"`
}

// words are the message of what was changed.
func (w *wish) words() string { return appliedWords(w.Changed) }

func appliedWords(changed []string) string {
	return "applied in place: " + strings.Join(changed, ", ") + "; nothing is replayed"
}

// newWish compares a staging with the version of its hash; nil when they say the same.
func newWish(ctx context.Context, db pg.DB, in Staging, number int) (*wish, error) {
	spec, layout, err := specOf(ctx, db, job.Ref{Job: in.Spec.Job, Number: job.Number(number)})
	if err != nil {
		return nil, err
	}
	in.Layout.Keep = sameKeep(layout.Keep, in.Layout.Keep)
	in.Layout.Lanes = max(layout.Lanes, in.Layout.Lanes) // rows stay in the lanes in which they are
	changed, err := changes(spec, in.Spec)
	if err != nil {
		return nil, err
	}
	same, err := sameLayout(layout, in.Layout)
	if err != nil {
		return nil, err
	}
	if !same && !reshapes(changed) {
		changed = append(changed, viewChanged)
	}
	if len(changed) == 0 {
		return nil, nil //nolint:nilnil // nothing is wished for
	}
	out := &wish{File: in.File, Changed: changed}
	s, l, err := marshalSpec(in)
	out.Spec, out.Layout = json.RawMessage(s), json.RawMessage(l)
	return out, err
}

// Changes are the keys of the job file that a deploy would apply in place to a version of the same hash.
func (s *Store) Changes(ctx context.Context, in Staging, number job.Number) ([]string, error) {
	w, err := newWish(ctx, s.pool, in, int(number))
	if w == nil || err != nil {
		return nil, err
	}
	return w.Changed, nil
}

// keepLive applies to the live version what is not part of the hash. What readers see is written by the controller of a
// deployment; the rest is in force at once.
func keepLive(ctx context.Context, tx *pg.Tx, in Staging, j jobRow, live versionKey, open []openDeployment) (Staged, error) {
	out := Staged{Job: in.Spec.Job, Number: job.Number(live.Number), Live: true}
	w, err := newWish(ctx, tx, in, live.Number)
	if err != nil {
		return out, err
	}
	if out.Deployment, err = newestDeployment(ctx, tx, j.Name, live.Number); err != nil {
		return out, err
	}
	for _, d := range open {
		if d.Number == live.Number && d.FlipOnly && d.State == job.RollingOut && w != nil { // it is being applied: with the newest wish
			out.Deployment, out.FlipOnly, out.Resumed, out.Applied = d.ID, true, true, w.Changed
			return out, setWish(ctx, tx, d.ID, w)
		}
	}
	switch {
	case w == nil:
		out.Nothing = true
		return out, nil
	case !reshapes(w.Changed):
		out.Applied, err = applyPlainly(ctx, tx, in, live.Number, out.Deployment)
		return out, err
	}
	if err := otherRollingOut(j.Name, 0, open); err != nil {
		return Staged{}, err
	}
	out.FlipOnly, out.Applied = true, w.Changed
	if out.Deployment, err = insertDeployment(ctx, tx, in, j, live.Number, true, job.PromoteAuto); err != nil {
		return out, err
	}
	if err := setWish(ctx, tx, out.Deployment, w); err != nil {
		return out, err
	}
	return out, addEvent(ctx, tx, entry{
		Job: j.Name, Number: live.Number, Deployment: out.Deployment, Kind: "deploy", By: in.By,
		Message: "the live version stays; to be applied in place: " + strings.Join(w.Changed, ", "),
	})
}

// applyPlainly puts what changed beside the hash in force at once, with its event.
func applyPlainly(ctx context.Context, tx *pg.Tx, in Staging, number int, deployment int64) ([]string, error) {
	w, err := newWish(ctx, tx, in, number)
	if err != nil || w == nil {
		return nil, err
	}
	ref := job.Ref{Job: in.Spec.Job, Number: job.Number(number)}
	if err := w.write(ctx, tx, ref); err != nil {
		return nil, err
	}
	return w.Changed, addEvent(ctx, tx, entry{
		Job: string(ref.Job), Number: number, Deployment: deployment, Kind: eventApplied, By: in.By, Message: w.words(), Detail: w.Changed,
	})
}

// write stores the spec on the version and moves the end of a rollback window with keep_old.
func (w *wish) write(ctx context.Context, tx *pg.Tx, ref job.Ref) error {
	if err := w.keepFrom(ctx, tx, ref); err != nil {
		return err
	}
	args := pgx.NamedArgs{
		"job": string(ref.Job), "number": int(ref.Number), "spec": string(w.Spec), "layout": string(w.Layout), "file": w.File,
	}
	var was, is int64
	err := tx.QueryRow(ctx, `WITH old AS (
			SELECT coalesce((spec -> 'keep_old')::bigint, 0) AS keep FROM kappactl.version WHERE job = @job AND number = @number FOR UPDATE)
		UPDATE kappactl.version v SET spec = @spec::jsonb, layout = @layout::jsonb, file = @file,
			lanes = coalesce((@spec::jsonb #> '{live,lanes}')::integer, 1)
		FROM old WHERE v.job = @job AND v.number = @number
		RETURNING old.keep, coalesce((v.spec -> 'keep_old')::bigint, 0)`, args).Scan(&was, &is)
	if err != nil {
		return fmt.Errorf("write the spec of %s: %w", ref, err)
	}
	if was == is {
		return nil
	}
	_, err = tx.Exec(ctx, `WITH d AS (
			UPDATE kappactl.deployment SET observe_until = observe_until + @more::interval
			WHERE job = @job AND number = @number AND state = 'observing' RETURNING previous)
		UPDATE kappactl.version v SET standby_until = standby_until + @more::interval
		FROM d WHERE v.job = @job AND v.number = d.previous AND v.phase = 'standby'`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number), "more": pg.Interval(time.Duration(is - was))})
	return wrap(err, "move the rollback window of %s", ref)
}

func setWish(ctx context.Context, tx *pg.Tx, deployment int64, w *wish) error {
	text, err := json.Marshal(options{Apply: w})
	if err != nil {
		return fmt.Errorf("encode what is to be applied: %w", err)
	}
	_, err = tx.Exec(ctx, `UPDATE kappactl.deployment SET options = options || @apply::jsonb WHERE id = @id`,
		pgx.NamedArgs{"id": deployment, "apply": string(text)})
	return wrap(err, "write what deployment %d applies", deployment)
}

// wished is the state with the spec that the deployment is to put in force.
func (st *state) wished() (*state, *wish, error) {
	w := st.options().Apply
	if w == nil {
		w = &wish{Spec: json.RawMessage(st.Spec), Layout: json.RawMessage(st.Layout), Changed: []string{viewChanged}}
	}
	return st.withSpec(w)
}

func (st *state) withSpec(w *wish) (*state, *wish, error) {
	out := *st
	out.Spec, out.Layout, out.spec, out.layout = string(w.Spec), string(w.Layout), job.Spec{}, job.Layout{}
	decoded, err := out.decoded()
	return decoded, w, err
}

// apply puts the deployment's wish in force on the live version: indexes first, then spec, history and view in one
// transaction that queues before readers no longer than a flip does. The view is the last statement.
func (c *Controller) apply(ctx context.Context, st *state) error {
	a := actor{deployment: st.ID, claim: st.claim, by: st.By}
	wished, w, err := st.wished()
	if err != nil {
		return err
	}
	if err := c.Tables.Index(ctx, c.Pool, st.ref(), st.schema(), wished.layout); err != nil {
		return err
	}
	_, err = c.until(ctx, Promote, st.ref(), func(ctx context.Context) (string, error) {
		err := c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
			j, err := a.begin(ctx, tx, job.Name(st.Job))
			if err != nil {
				return err
			}
			if !sameNumber(j.Live, new(st.ref())) {
				return liveChanged(st, j.Live)
			}
			if err := sameOptions(ctx, tx, st); err != nil {
				return err
			}
			if err := inherit(ctx, tx, st); err != nil {
				return err
			}
			if err := w.write(ctx, tx, st.ref()); err != nil {
				return err
			}
			e := st.entry(eventApplied, "%s", w.words())
			e.By, e.Detail = st.By, w.Changed
			if err := addEvent(ctx, tx, e); err != nil {
				return err
			}
			if wished, _, err = st.withSpec(w); err != nil {
				return err
			}
			return c.switchView(ctx, tx, wished, j)
		})
		if pg.Retryable(err) {
			holders, e := lockHolders(ctx, c.Pool, st.view())
			return "", errors.Join(e, &tryAgain{cause: "a lock on view " + st.view().String() + " could not be had", blockers: holders, err: err})
		}
		return "", err
	})
	return err
}

// sameOptions is errLost when somebody wished for something else since the state was read.
func sameOptions(ctx context.Context, tx *pg.Tx, st *state) error {
	var now string
	err := tx.QueryRow(ctx, `SELECT options::text FROM kappactl.deployment WHERE id = @id`, pgx.NamedArgs{"id": st.ID}).Scan(&now)
	if err == nil && now != st.Options {
		return errLost
	}
	return wrap(err, "read the options of deployment %d", st.ID)
}

// notApplied ends a deployment whose wish was refused: the view stays as it is, and the rollback window goes on.
func (w *watch) notApplied(ctx context.Context, st *state, a Answer) (next, error) {
	err := w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := fence(ctx, tx, st); err != nil {
			return err
		}
		if err := inherit(ctx, tx, st); err != nil {
			return err
		}
		if err := noteAnswer(ctx, tx, st.ID, a); err != nil {
			return err
		}
		return addEvent(ctx, tx, st.entry("waiting", "%s", a.Text))
	})
	if err != nil {
		return done, err
	}
	w.c.log(st).Info("not applied", "exit_code", int(a.Code), "reason", a.Text)
	return again, nil
}

// noteAnswer writes what went wrong on a deployment, whatever its state.
func noteAnswer(ctx context.Context, tx *pg.Tx, id int64, a Answer) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET exit_code = @code, message = @text, next_command = @next, promoted_at = NULL WHERE id = @id`,
		pgx.NamedArgs{"id": id, "code": int(a.Code), "text": a.Text, "next": a.Next})
	return wrap(err, "note what deployment %d met", id)
}

// indexed makes the version's indexes be those of its layout: once, and when they were changed in place.
func (w *watch) indexed(ctx context.Context, st *state) error {
	want := fmt.Sprint("made for ", st.layout.Indexes)
	if w.indexes == want {
		return nil
	}
	err := w.during(ctx, st, func(ctx context.Context) error {
		return w.c.Tables.Index(ctx, w.c.Pool, st.ref(), st.schema(), st.layout)
	})
	if a, refused := hopeless(err); refused {
		w.c.log(st).Warn("indexes are not made", "reason", a.Text)
		err = nil
	}
	if err == nil {
		w.indexes = want
	}
	return err
}
