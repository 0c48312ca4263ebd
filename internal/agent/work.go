package agent

import (
	"context"
	"strconv"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Work is one kind of work that agents share by lease: the rows of a table with the columns id bigint, claim bigint,
// owner text and lease timestamptz. The texts are SQL, with the row as alias r.
type Work struct {
	Name  string // of one item, in logs and errors: request
	Table string // kappactl.request; a higher id is a newer row
	Open  string // condition: the row needs an agent
	Held  string // condition for keeping the lease while an agent works on the row; empty: until the work ends
	Eager bool   // a claimed item soon causes more work, so the agent polls frequently for a while
	// Run works on an item until it is done, the claim is lost or ctx ends. After an error it is called again after a
	// growing pause, by this agent or another.
	Run func(ctx context.Context, id, claim int64) error
}

// lease describes the lease of the items, oldest first.
func (w Work) lease() pg.Leased {
	return pg.Leased{Table: w.Table, Key: "id", Order: "r.id", Columns: "r.id, r.claim"}
}

// key identifies a task: an item of leased work, or a version.
type key struct {
	kind string  // Work.Name; empty: a version
	id   int64   // of the item
	ref  job.Ref // of the version
}

func (k key) String() string {
	if k.kind == "" {
		return "version " + k.ref.String()
	}
	return k.kind + " " + strconv.FormatInt(k.id, 10)
}
