package reason_test

import (
	"time"

	"github.com/kappactl/kappactl/internal/reason"
)

func judgeExamples() []example {
	value := reason.ABGuardValue("v4", 0.0123456, 0.01)
	const run = "run 2 of the experiment of orders "
	return []example{
		{reason.ABUndecided(), "the arms do not differ enough for a verdict yet"},
		{reason.ABWaitsForResume(), "it is paused; guardrails go on"},
		{reason.ABRuntime(90 * time.Minute), "it runs for another 1h30m at least"},
		{reason.ABSubjects("v4", 99, 400), "the window of 99 subjects of v4 is over; 400 are needed"},
		{reason.ABGuardsOnly(), "there are no rewards: only guardrails are looked at"},
		{reason.ABExplores(time.Minute), "the first weights stay for another 1m"},
		{reason.ABConstant(), "all rewards are the same"},
		{reason.ABBreach("errors", value), "guardrail errors is breached: v4 is at 0.01235, the limit is 0.01"},
		{reason.ABBlind("errors", reason.ABGuardNoData()), "guardrail errors cannot be judged: there is no data to judge"},
		{reason.ABGuardFailed(value), "its query failed: v4 is at 0.01235, the limit is 0.01"},
		{
			reason.ABMismatch(0.0000123456),
			"subjects did not come to the arms as the weights say (p = 1.235e-05): something loses those of one arm",
		},
		{value, "v4 is at 0.01235, the limit is 0.01"},
		{reason.ABGuardNoData(), "there is no data to judge"},
		{reason.ABCrossed(0.02), "2% of the subjects have read several arms"},
		{reason.ABSource(value), "rewards cannot be read: v4 is at 0.01235, the limit is 0.01"},
		{reason.ABStuck(4 * time.Minute), "rewards have not been read up to a later time for 4m"},
		{reason.ABNoNumber(), "an estimate is not a number"},
		{reason.ABPromoteRefused(value), "its promote was refused: v4 is at 0.01235, the limit is 0.01"},
		{reason.ABHarm("v3"), "the control v3 is better than every other arm"},
		{reason.ABWon("v4", 0.012, 0.001, 0.023), "v4 is better than the control by 0.012 (0.001 to 0.023)"},
		{
			reason.ABBest("v4", 0.995, 0.0001),
			"v4 is the best arm with a probability of 99.5%; choosing it is expected to lose 0.0001",
		},
		{reason.ABRamped("v4"), "v4 has been through all steps of the ramp"},
		{reason.ABTimeout(24 * time.Hour), "it has not been decided in 24h"},
		{
			reason.ABRolledBack("orders", 2, "v3", reason.ABHarm("v3")),
			run + "is over, every reader reads v3: the control v3 is better than every other arm",
		},
		{reason.ABWinner("orders", 2, reason.ABRamped("v4")), run + "has a winner: v4 has been through all steps of the ramp"},
		{
			reason.ABPromotes("orders", 2, "v4", reason.ABRamped("v4")),
			run + "asks to promote v4: v4 has been through all steps of the ramp",
		},
	}
}
