package plan

import (
	"context"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Removal holds the effects of drop on a job. The command prints it, and the agent executes it. Names of tables and
// views are quoted as PostgreSQL needs them.
type Removal struct {
	Job      job.Name `json:"job"`
	View     string   `json:"view"`
	KeepView bool     `json:"keep_view"`
	// DropsView is false when the view stays, was never made, or is not this job's any more.
	DropsView bool    `json:"drops_view"`
	Live      *string `json:"live"`
	// GivesBack: the adopted table, which is live, gets its name back.
	GivesBack bool     `json:"gives_back"`
	Aborts    []string `json:"aborts"` // versions that never were live
	Drops     []string `json:"drops"`  // tables
	Keeps     []string `json:"keeps"`  // tables
	Groups    []string `json:"groups"` // consumer groups
	// UnderWay: an earlier drop has begun, and this one waits for its end.
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
		out = append(out, fmt.Sprintf("keep view %s: it goes on showing what it shows now, and nothing writes it any more",
			r.View))
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
func (s *Store) Removal(ctx context.Context, name job.Name, keepView bool, serving Serving) (Removal, error) {
	var r Removal
	err := s.pool.ReadOnly(ctx, func(tx *pg.Tx) error {
		j, err := ledger.ReadJob(ctx, tx, name)
		if err != nil {
			return err
		}
		r, err = Removing(ctx, tx, j, keepView, serving)
		return err
	})
	return r, err
}

// Removing is Removal in a transaction: with the job's row locked, the agent acts by it.
func Removing(ctx context.Context, db pg.DB, j ledger.JobRow, keepView bool, serving Serving) (Removal, error) {
	name := job.Name(j.Name)
	r := Removal{
		Job: name, View: ledger.QuotedView(j.View()), KeepView: keepView, UnderWay: j.DroppingAt != nil,
		Aborts: []string{}, Drops: []string{}, Keeps: []string{}, Groups: []string{},
	}
	if r.UnderWay {
		return r, nil
	}
	if err := ledger.NoExperiment(ctx, db, name); err != nil {
		return r, err
	}
	open, err := ledger.OpenDeployments(ctx, db, j.Name)
	if err != nil {
		return r, err
	}
	for _, d := range open {
		if d.State == job.RollingOut {
			return r, ledger.RefuseFor(job.ExitConflict, fmt.Sprintf("kappactl abort %s %s", name, job.Number(d.Number)),
				reason.RollingOut(d.ID, job.Ref{Job: name, Number: job.Number(d.Number)}))
		}
	}
	if j.Live == nil && keepView {
		return r, ledger.RefuseFor(job.ExitConflict, "kappactl drop "+j.Name, reason.NoViewToKeep(name))
	}
	if err := r.view(ctx, db, j, serving); err != nil {
		return r, err
	}
	r.GivesBack = r.DropsView && *j.Live == 0
	return r, r.versions(ctx, db, j, serving)
}

// view refuses to drop a view that others read.
func (r *Removal) view(ctx context.Context, db pg.DB, j ledger.JobRow, serving Serving) error {
	if j.Live == nil {
		return nil
	}
	live := job.Number(*j.Live).String()
	r.Live = &live
	if r.KeepView {
		return nil
	}
	var err error
	if r.DropsView, err = serving.ReadsJob(ctx, db, j.View(), r.Job); err != nil || !r.DropsView {
		return err
	}
	readers, err := serving.Readers(ctx, db, j.View())
	if err != nil || len(readers) == 0 {
		return err
	}
	return ledger.RefuseFor(job.ExitConflict,
		fmt.Sprintf("drop them first, or keep the view: kappactl drop %s --keep-view", j.Name),
		reason.ViewRead(r.View, readers))
}

// versions sorts the tables by what becomes of them, and refuses to drop one that others read.
func (r *Removal) versions(ctx context.Context, db pg.DB, j ledger.JobRow, serving Serving) error {
	rows, err := ledger.ReadDropped(ctx, db, r.Job)
	if err != nil {
		return err
	}
	var read []string
	for _, v := range rows {
		ref := job.Ref{Job: r.Job, Number: job.Number(v.Number)}
		version := v.Version(j)
		var tables []string
		for _, name := range version.Tables() {
			tables = append(tables, ledger.QuotedView(job.ViewName{Schema: j.ViewSchema, Name: name}))
		}
		live := j.Live != nil && *j.Live == v.Number
		if ledger.Candidate(v.Phase) {
			r.Aborts = append(r.Aborts, fmt.Sprintf("%s (%s)", ref.Number, v.Phase))
		}
		if v.KeepTable || live && r.KeepView {
			if !r.GivesBack || !live {
				r.Keeps = append(r.Keeps, tables...)
			}
		} else {
			r.Drops = append(r.Drops, tables...)
			names, err := serving.Dependants(ctx, db, version, j.View())
			if err != nil {
				return err
			}
			for _, n := range names {
				read = append(read, fmt.Sprintf("%s by %s", tables[0], n))
			}
		}
		if !ref.Adopted() {
			of, err := pg.Identity(ctx, db)
			if err != nil {
				return err
			}
			r.Groups = append(r.Groups, ref.Group(of))
		}
	}
	if len(read) > 0 {
		return ledger.RefuseFor(job.ExitConflict, "drop them, or let them read "+r.View+" instead",
			reason.TablesRead(r.Job, read))
	}
	return nil
}
