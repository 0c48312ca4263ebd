package reason_test

import (
	"errors"

	"github.com/kappactl/kappactl/internal/reason"
)

func experimentExamples() []example {
	arms := []string{"v3 90%", "v4 10%"}
	return []example{
		{reason.ABStarted("orders", 2, arms, 1), "run 2 of the experiment of orders splits readers between v3 90%, v4 10%"},
		{
			reason.ABStarted("orders", 2, arms, 0.5),
			"run 2 of the experiment of orders splits readers between v3 90%, v4 10%; 50% of the subjects are in it",
		},
		{reason.ABWeights("orders", 2, arms), "the weights of run 2 of the experiment of orders are v3 90%, v4 10%"},
		{reason.ABPaused("orders", 2, "v3"), "run 2 of the experiment of orders is paused: every reader reads v3"},
		{reason.ABResumed("orders", 2, "the client is fixed"), "run 2 of the experiment of orders goes on: the client is fixed"},
		{reason.ABStopped("orders", 2, "v3"), "run 2 of the experiment of orders is over: every reader reads v3"},
		{reason.ABEndedByFlip("orders", 2, "v4"), "run 2 of the experiment of orders is over: v4 became live"},
		{reason.ABForgot(1), "1 assignment of a subject is deleted"},
		{reason.ABForgot(3), "3 assignments of a subject are deleted"},
		{
			reason.ABTrouble("orders", 2, "v1", reason.VersionPaused(ref())),
			"run 2 of the experiment of orders is paused, every reader reads v1: orders/v3 is paused",
		},
		{reason.ABRunning("orders", 2), "run 2 of the experiment of orders splits its readers between versions"},
		{reason.ABNone("orders"), "no experiment of orders is running"},
		{reason.ABArm(ref()), "orders/v3 is an arm of the running experiment: readers read it"},
		{reason.ABNoArm(ref(), []string{"v1", "v2"}), "orders/v3 is no arm of the running experiment, which has v1, v2"},
		{
			reason.ABFixed("orders", 2),
			"the weights of run 2 of the experiment of orders stay: with assign: hash a change would move subjects to other arms",
		},
		{
			reason.ABOtherArms("orders", 2, []string{"v3", "v4"}, []string{"v3", "v5"}),
			"the arms of run 2 of the experiment of orders are v3, v4, and the weights are those of v3, v5",
		},
		{reason.ABNoCandidate("orders", "v3", nil), "job orders has no version to test against v3"},
		{reason.ABNoCandidate("orders", "v3", []string{"v4", "v5"}), "job orders has several versions to test against v3: v4, v5"},
		{reason.ABWithoutLive("v3"), "v3, the live version, is no arm: it is the control of every experiment"},
		{reason.ABWrongWeights(errors.New("the weights add up to 0.9, not to 1")), "the weights add up to 0.9, not to 1"},
		{
			reason.ABNeedsSticky("bandit"),
			"in mode bandit weights change, and with assign: hash a change would move subjects to other arms",
		},
		{reason.ABAlready("orders", 2, "paused"), "run 2 of the experiment of orders is paused already"},
	}
}
