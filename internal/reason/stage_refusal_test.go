package reason_test

import (
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

func stageRefusalExamples() []example {
	view, other := job.ViewName{Schema: "public", Name: "v"}, job.ViewName{Schema: "public", Name: "w"}
	return []example{
		{reason.ViewOfOther(view, "clicks"), `view public.v belongs to job "clicks"`},
		{reason.ViewOfOther(view, ""), "view public.v belongs to another job"},
		{reason.DropUnderWay("orders"), `job "orders" is being dropped`},
		{
			reason.ViewKept("orders", view, other),
			`job "orders" serves view public.v, but the file names public.w: a job keeps its view`,
		},
		{
			reason.OtherCluster("orders", "a", "b"),
			`job "orders" reads Kafka cluster a, but these brokers are cluster b: its offsets mean nothing there`,
		},
		{reason.ViewTaken(view, "table", ""), "public.v is a table that kappactl did not make"},
		{reason.ViewTaken(view, "view", "clicks"), "public.v is a view that job clicks left when it was dropped with --keep-view"},
		{
			reason.WasRolledBack("orders", "v3"),
			"this version of orders was rolled back (v3); deploying it again would flip readers back to it",
		},
		{reason.RollingOut(7, ref()), "deployment 7 of orders/v3 is rolling out; a job has one at a time"},
		{
			reason.ReplayGap("-30d", []string{"orders/2 begins at 7", "orders/3 begins at 9"}),
			"the replay cannot be complete: replay.start is -30d and\n  orders/2 begins at 7\n  orders/3 begins at 9",
		},
		{
			reason.UnknownPartitions([]string{"orders/7", "orders/8"}),
			"replay.start has offsets of partitions that do not exist: orders/7, orders/8",
		},
		{reason.NoStartPoint("monday"), `replay.start: "monday" is not a start point`},
		{
			reason.TopicCompacted("orders"), "topic orders is compacted: a replay sees fewer records than live did, so results " +
				"that count or list its records would change by themselves; the latest record of each key (serve.key) can be served",
		},
		{reason.NoViewNamed(), "no view is named"},
		{reason.AdoptedAlready("orders", view), `job "orders" has adopted public.v already`},
		{reason.JobExists("orders"), `job "orders" exists and has versions of its own: adopt begins a job`},
		{reason.DependantsStay(view, []string{"view a", "view b"}), "what depends on public.v and cannot follow to a view: view a, view b"},
		{reason.NoViewToKeep("orders"), `job "orders" has no live version: there is no view to keep`},
		{reason.ViewRead("public.v", []string{"view a", "view b"}), "other relations read public.v: view a, view b"},
		{reason.TablesRead("orders", []string{"t by view a", "t by view b"}), "other relations read tables of orders: t by view a, t by view b"},
		{reason.DropStuck(ref(), reason.AlreadyLive(ref())), "orders/v3: orders/v3 is live already"},
	}
}
