package reprocess

import (
	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Work is what a Controller does under leases: it looks after deployments and answers requests.
func (c *Controller) Work() []agent.Work {
	return []agent.Work{
		{Name: "deployment", Table: "kappactl.deployment", Open: ledger.NeedsController, Eager: true, Run: c.Control},
		{Name: "request", Table: "kappactl.request", Open: ledger.NeedsAnswer, Held: ledger.NeedsAnswer, Run: c.Answer},
	}
}
