package reprocess

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Removal is what drop does to a job: what is printed before, and what the agent acts by. Names of tables and views are
// quoted as PostgreSQL needs them.
type Removal struct {
	Job      job.Name `json:"job"`
	View     string   `json:"view"`
	KeepView bool     `json:"keep_view"`
	// DropsView is false when the view stays, was never made, or is not this job's any more.
	DropsView bool    `json:"drops_view"`
	Live      *string `json:"live"`
	// GivesBack says that the adopted table, which is live, gets its name back.
	GivesBack bool     `json:"gives_back"`
	Aborts    []string `json:"aborts"` // versions that never were live
	Drops     []string `json:"drops"`  // tables
	Keeps     []string `json:"keeps"`  // tables
	Groups    []string `json:"groups"` // consumer groups
	// UnderWay says that an earlier drop has begun: this one waits for its end.
	UnderWay bool `json:"under_way"`
}

// Lines say what would be done, one sentence a line.
func (r Removal) Lines() []string {
	var out []string
	add := func(what string, names []string) {
		if len(names) > 0 {
			out = append(out, what+" "+strings.Join(names, ", "))
		}
	}
	add("stop", r.Aborts)
	switch {
	case r.KeepView:
		out = append(out, fmt.Sprintf("keep view %s: it goes on showing what it shows now, and nothing writes it any more", r.View))
	case r.GivesBack:
		out = append(out, fmt.Sprintf("drop view %s and give the adopted table that name back", r.View))
	case r.DropsView:
		out = append(out, "drop view "+r.View)
	}
	add("keep table", r.Keeps)
	add("drop table", r.Drops)
	add("delete consumer group", r.Groups)
	return append(out, "forget the job's versions, positions and dead letters; its history stays")
}

// Removal says what dropping a job would do. What drop would refuse is a *job.Refusal.
func (s *Store) Removal(ctx context.Context, name job.Name, keepView bool, tables Tables, views Removals) (Removal, error) {
	var r Removal
	err := s.pool.ReadOnly(ctx, func(tx *pg.Tx) error {
		j, err := readJob(ctx, tx, name)
		if err != nil {
			return err
		}
		r, err = removal(ctx, tx, j, keepView, tables, views)
		return err
	})
	return r, err
}

// removal is the plan; with the job's row locked it is what is done.
func removal(ctx context.Context, db pg.DB, j jobRow, keepView bool, tables Tables, views Removals) (Removal, error) {
	name := job.Name(j.Name)
	r := Removal{Job: name, View: quoted(j.view()), KeepView: keepView, UnderWay: j.DroppingAt != nil, Aborts: []string{}, Drops: []string{}, Keeps: []string{}, Groups: []string{}}
	if r.UnderWay {
		return r, nil
	}
	open, err := openDeployments(ctx, db, j.Name)
	if err != nil {
		return r, err
	}
	for _, d := range open {
		if d.State == job.RollingOut {
			return r, refuse(job.ExitConflict, fmt.Sprintf("kappactl abort %s %s", name, job.Number(d.Number)),
				"deployment %d of %s is rolling out: end it first", d.ID, job.Ref{Job: name, Number: job.Number(d.Number)})
		}
	}
	if j.Live == nil && keepView {
		return r, refuse(job.ExitConflict, "kappactl drop "+j.Name, "job %q has no live version: there is no view to keep", name)
	}
	if err := r.view(ctx, db, j, views); err != nil {
		return r, err
	}
	r.GivesBack = r.DropsView && *j.Live == 0
	return r, r.versions(ctx, db, j, tables)
}

// view refuses to drop a view that others read.
func (r *Removal) view(ctx context.Context, db pg.DB, j jobRow, views Removals) error {
	if j.Live == nil {
		return nil
	}
	live := job.Number(*j.Live).String()
	r.Live = &live
	if r.KeepView {
		return nil
	}
	var err error
	if r.DropsView, err = views.ReadsJob(ctx, db, j.view(), r.Job); err != nil || !r.DropsView {
		return err
	}
	readers, err := views.Readers(ctx, db, j.view())
	if err != nil || len(readers) == 0 {
		return err
	}
	return refuse(job.ExitConflict, fmt.Sprintf("drop them first, or keep the view: kappactl drop %s --keep-view", j.Name),
		"other relations read %s: %s", r.View, strings.Join(readers, ", "))
}

// versions sorts the tables by what becomes of them, and refuses to drop one that others read.
func (r *Removal) versions(ctx context.Context, db pg.DB, j jobRow, tables Tables) error {
	rows, err := readDropped(ctx, db, r.Job)
	if err != nil {
		return err
	}
	var read []string
	for _, v := range rows {
		ref := job.Ref{Job: r.Job, Number: job.Number(v.Number)}
		table := quoted(job.ViewName{Schema: j.ViewSchema, Name: ref.Table()})
		live := j.Live != nil && *j.Live == v.Number
		if candidate(v.Phase) {
			r.Aborts = append(r.Aborts, fmt.Sprintf("%s (%s)", ref.Number, v.Phase))
		}
		if v.KeepTable || live && r.KeepView {
			if !r.GivesBack || !live {
				r.Keeps = append(r.Keeps, table)
			}
		} else {
			r.Drops = append(r.Drops, table)
			names, err := tables.Dependants(ctx, db, ref, j.view())
			if err != nil {
				return err
			}
			for _, n := range names {
				read = append(read, fmt.Sprintf("%s by %s", table, n))
			}
		}
		if !ref.Adopted() {
			r.Groups = append(r.Groups, ref.Group())
		}
	}
	if len(read) > 0 {
		return refuse(job.ExitConflict, "drop them, or let them read "+r.View+" instead", "other relations read tables of %s: %s", r.Job, strings.Join(read, "; "))
	}
	return nil
}

// drop ends a job: in one transaction the view goes and every version begins to end; their controllers clean up; then the
// job is forgotten. Each part can be repeated by another agent.
func (c *Controller) drop(ctx context.Context, a actor, name job.Name, args Args) error {
	_, err := c.until(ctx, Drop, job.Ref{Job: name}, func(ctx context.Context) (string, error) {
		return "", c.markDropped(ctx, a, name, args.KeepView)
	})
	if err != nil {
		return err
	}
	c.hit(FaultDropMarked)
	if err := c.awaitDropped(ctx, name); err != nil {
		return err
	}
	c.hit(FaultDropCleaned)
	return c.overRows(ctx, Drop, job.Ref{Job: name}, func(tx *pg.Tx) error { return c.forget(ctx, tx, a, name) })
}

func (c *Controller) markDropped(ctx context.Context, a actor, name job.Name, keepView bool) error {
	var view job.ViewName
	err := c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		j, err := a.begin(ctx, tx, name)
		view = j.view()
		if err != nil || j.DroppingAt != nil {
			return err
		}
		plan, err := removal(ctx, tx, j, keepView, c.Tables, c.Removals)
		if err != nil {
			return err
		}
		if err := endVersions(ctx, tx, j, keepView); err != nil {
			return err
		}
		if err := addEvent(ctx, tx, entry{Job: j.Name, Whole: true, Kind: "drop", Message: strings.Join(plan.Lines(), "; "), Detail: plan, By: a.by}); err != nil {
			return err
		}
		// The view last: readers wait for what follows its lock.
		if err := c.beforeReaders(ctx, tx); err != nil {
			return err
		}
		switch {
		case keepView:
			return c.Removals.LeaveView(ctx, tx, view, job.Ref{Job: name, Number: job.Number(*j.Live)})
		case !plan.DropsView:
			return nil
		}
		if err := c.Removals.DropView(ctx, tx, view); err != nil || !plan.GivesBack {
			return err
		}
		return c.Adoptions.GiveBack(ctx, tx, view, job.Ref{Job: name})
	})
	if err != nil {
		return c.lockTrouble(ctx, "view", view, err)
	}
	return nil
}

// endVersions sends every version of the job to its end and closes its deployments.
func endVersions(ctx context.Context, tx *pg.Tx, j jobRow, keepView bool) error {
	rows, err := lockDropped(ctx, tx, job.Name(j.Name))
	if err != nil {
		return err
	}
	for _, v := range rows {
		if _, moves := Next(v.Phase, DropAsked); !moves {
			continue // it is on its way out already
		}
		if err := stepVersion(ctx, tx, job.Ref{Job: job.Name(j.Name), Number: job.Number(v.Number)}, v.Phase, DropAsked); err != nil {
			return err
		}
	}
	return markDropping(ctx, tx, j, keepView)
}

// awaitDropped waits until nothing of any version is left, and says what is in the way when it stays there.
func (c *Controller) awaitDropped(ctx context.Context, name job.Name) error {
	began := c.Now()
	for {
		rows, err := readDropped(ctx, c.Pool, name)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return nil
		}
		stuck := slices.IndexFunc(rows, func(v droppedRow) bool { return v.Verdict == job.Stalled && strings.HasPrefix(v.Reason, notDropped) })
		if stuck >= 0 && c.Now().Sub(began) >= c.config.DropPatience {
			return refuse(job.ExitConflict, "end what is in the way, then: kappactl drop "+string(name),
				"%s: %s", job.Ref{Job: name, Number: job.Number(rows[stuck].Number)}, rows[stuck].Reason)
		}
		if !sleep(ctx, c.config.Tick/4) {
			return ctx.Err()
		}
	}
}

// forget removes the job's rows and answers.
func (c *Controller) forget(ctx context.Context, tx *pg.Tx, a actor, name job.Name) error {
	j, err := a.begin(ctx, tx, name)
	if err != nil {
		return err
	}
	kept, err := forgetJob(ctx, tx, j, a.by)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("job %s is dropped", name)
	if len(kept) > 0 {
		text += fmt.Sprintf("; %s stays", strings.Join(kept, " and "))
	}
	if err := addEvent(ctx, tx, entry{Job: j.Name, Whole: true, Kind: "dropped", Message: text, By: a.by}); err != nil {
		return err
	}
	return a.answer(ctx, tx, text, "kappactl history "+string(name))
}

func quoted(v job.ViewName) string { return pg.Ident(v.Schema, v.Name) }
