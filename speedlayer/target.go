package speedlayer

import (
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// target receives the rows of segments: the table of a version, or one generation of its batch layer. The segments of
// generations have a table of their own, since much reads those of a version's replay by job and number alone.
type target struct {
	ref        job.Ref
	generation int // 0: the version's table
}

func (t target) build() bool { return t.generation > 0 }

// staging is the name of the staging table, without schema.
func (t target) staging() string {
	if t.build() {
		return t.ref.StagingOf(t.generation)
	}
	return t.ref.Staging()
}

func (t target) args() pgx.NamedArgs {
	args := refArgs(t.ref)
	if t.build() {
		args["generation"] = t.generation
	}
	return args
}

// forReplays and forBuilds fill in a statement over segments: their table, the condition that selects the target's, and
// the column generation and its argument where rows are inserted.
var (
	forReplays = strings.NewReplacer("{segment}", "kappactl.segment", "{of}", "job = @job AND number = @number",
		"{, generation}", "", "{, @generation}", "")
	forBuilds = strings.NewReplacer("{segment}", "kappactl.batch_segment",
		"{of}", "job = @job AND number = @number AND generation = @generation",
		"{, generation}", ", generation", "{, @generation}", ", @generation")
)

// sql is a statement over segments as one over the target's.
func (t target) sql(template string) string {
	if t.build() {
		return forBuilds.Replace(template)
	}
	return forReplays.Replace(template)
}

// leased is how the segments are owned: those that retention deletes first are claimed first.
func (t target) leased() pg.Leased {
	return pg.Leased{
		Table: t.sql("{segment}"), Key: "id", Order: "deadline NULLS LAST, id",
		Columns: "id, claim, topic_id::text AS topic_id, topic, partition, from_offset, to_offset, leader_epoch, attempts",
	}
}
