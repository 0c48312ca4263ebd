package e2e_test

import (
	"fmt"
	"slices"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/reprocess"
)

// The kinds of fault.
const (
	agentKilled    = "agent killed (`kill -9`)"
	agentFrozen    = "agent frozen (`SIGSTOP`) and continued after another took over"
	cutFromPG      = "connection to PostgreSQL lost"
	cutFromCommand = "connection of a command to PostgreSQL lost before the answer arrives"
	pgStopped      = "PostgreSQL stopped (`-m immediate`) and started again"
	brokerKilled   = "broker killed and started again"
	brokerSilent   = "brokers silent (half-open: no error, no end)"
	brokerCut      = "connection to the brokers lost"
	brokerSlow     = "slow brokers: every answer late"
	noLeader       = "one partition without a leader"
	topicAgain     = "topic deleted and made again under its name"
	newPartition   = "partition added"
	transacted     = "transactions of a producer"
	recordsGone    = "records deleted by the log's retention"
	unusable       = "a server that cannot be used"
	readOnly       = "PostgreSQL takes no writes (a failover)"
	clockStepped   = "clock stepped"
)

const (
	takesOver = "its leases run out, another agent goes on from the rows"
	alsoAgain = "the transaction never was, or is whole: " + takesOver
)

// points are the steps at which an agent is killed, in the order of a version's life.
var points = []struct{ point, words string }{
	{reprocess.FaultDeployCreated, "the tables of the version are made"},
	{reprocess.FaultDeployFrozen, "what to replay is written down"},
	{faultpoint.SegmentClaimed, "a segment is claimed, nothing is read"},
	{faultpoint.SegmentReading, "records of a segment are decoded"},
	{faultpoint.SegmentCopying, "a part of its rows is copied, the rest is to come"},
	{faultpoint.SegmentStaged, "its rows are copied, the transaction is open"},
	{faultpoint.SegmentBeforeCommit, "it is marked done, the transaction is open"},
	{faultpoint.SegmentAfterCommit, "it is committed"},
	{reprocess.FaultDeployFilled, "the table is filled"},
	{reprocess.FaultDeployIndexed, "its index is made"},
	{reprocess.FaultDeploySealed, "the version goes live on its partitions"},
	{reprocess.FaultDeployVerified, "its checks have passed"},
	{faultpoint.LiveClaimed, "positions are claimed"},
	{faultpoint.LiveFetched, "records are read"},
	{faultpoint.LiveBegin, "the transaction is open"},
	{faultpoint.LivePositions, "the positions are moved, the transaction is open"},
	{faultpoint.LiveUpserted, "the rows are merged, the transaction is open"},
	{faultpoint.LiveBeforeCommit, "everything is written, the transaction is open"},
	{faultpoint.LiveAfterCommit, "it is committed"},
	{reprocess.FaultPromoteHeld, "both versions stand at the barrier"},
	{reprocess.FaultPromoteChecked, "the conditions of the flip hold, the transaction is open"},
	{reprocess.FaultPromoteFlipping, "the view is switched, the transaction is open"},
	{reprocess.FaultPromoteFlipped, "the flip is committed"},
	{reprocess.FaultPromoteAnswered, "who asked has the answer"},
	{reprocess.FaultRetireMarked, "the version is marked as retiring"},
	{reprocess.FaultRetireDropped, "its table is dropped"},
}

// at is when an agent is killed, in words.
func at(point string) string {
	for _, p := range points {
		if p.point == point {
			return fmt.Sprintf("`%s`: %s", p.point, p.words)
		}
	}
	return point
}

// faults is the matrix: every row is shown by a test of this package, which asserts how it ends.
func faults() []fault {
	var all []fault
	for _, p := range points {
		all = append(all, fault{what: agentKilled, when: at(p.point), does: alsoAgain})
	}
	all = append(all, fault{what: agentFrozen, when: "records are read, nothing is written", does: "its claim is no longer the row's: its transaction changes nothing, and it drops what it held"})
	for _, p := range frozenAt {
		does := "the database ends its idle transaction"
		if p == faultpoint.SegmentCopying {
			does = "the database would wait for the rest: the agent that takes over ends the transaction"
		}
		all = append(all, fault{what: agentFrozen, when: at(p), does: does + "; its claim is no longer the row's, and it drops what it held"})
	}
	for _, d := range []deed{cutBefore, cutAfter, halfOpen} {
		for _, s := range slices.Concat(replayStatements, liveStatements, flipStatements) {
			all = append(all, fault{what: d.kind(), when: s.name, does: d.cure(), soak: !slices.Contains(s.deeds(false), d)})
		}
	}
	for _, when := range []string{"another agent takes over, then the first is back", "the first is alone again"} {
		all = append(all, fault{what: cutFromPG + " altogether", when: when, does: "its leases run out by the database's clock; when it is back nothing is its own any more"})
	}
	for _, s := range askStatements {
		f := fault{what: cutFromCommand, when: s.name, does: "it asks again until it is answered"}
		if s.code != 0 {
			f.does, f.code, f.says = "it may or may not have been asked for, and that is said; the same command again goes on with what there is", s.code, s.says
		}
		all = append(all, f)
	}
	for _, s := range stoppedAt {
		all = append(all, fault{what: pgStopped, when: s.when, does: "agents try again until it answers; what it holds decides what is done again"})
	}
	return append(all,
		fault{what: readOnly, when: "something is asked for", does: "nothing is written; agents try again", code: 11, says: "read-only transaction"},
		fault{what: readOnly, when: "it takes writes again, on new connections only", does: "connections that took no write are dropped, new ones find the primary"},
		fault{what: clockStepped, when: "forwards an hour while following", does: "leases go by the database's clock, intervals by the monotonic one"},
		fault{what: clockStepped, when: "backwards an hour while following", does: "leases go by the database's clock, intervals by the monotonic one"},
		fault{what: clockStepped, when: "forwards in mid replay; then a promote", does: "barrier and flip go by the database's clock"},
		fault{what: clockStepped, when: "its agent dies, another one has the right time", does: takesOver},
		fault{what: clockStepped, when: "of the machine where a command runs", does: "the age of a sample goes by the database's clock"},
		fault{what: brokerKilled, when: "in mid replay", does: "segments are tried again until the broker answers; `deploy` waits"},
		fault{what: brokerKilled, when: "while following", does: "reading goes on at the position in PostgreSQL"},
		fault{what: brokerSilent, when: "in mid replay", does: "the verdict is `unknown`; requests are given up and sent again; `deploy` waits"},
		fault{what: brokerSilent, when: "while following, asked whether it is ready", does: "where the log ends is unknown, and unknown is never ready", code: 3},
		fault{what: brokerSilent, when: "while following", does: "reading goes on by itself when they answer again"},
		fault{what: brokerCut, when: "five times while records arrive", does: "reading goes on at the position"},
		fault{what: brokerSlow, when: "a version replays and is promoted", does: "everything takes longer"},
		fault{what: noLeader, when: "a candidate is asked whether it is ready", does: "its lag is unknown, the others' is shown, the sum is unknown", code: 3, says: "LEADER_NOT_AVAILABLE"},
		fault{what: noLeader, when: "a candidate is promoted", does: "it is tried for a minute, and refused with the reason", code: 3, says: "LEADER_NOT_AVAILABLE", soak: true},
		fault{what: noLeader, when: "it has one again", does: "the candidate is ready again by itself"},
		fault{what: topicAgain, when: "the agent runs", does: "positions belong to the topic's id: nothing of the new topic is read", code: 7, says: "topic recreated"},
		fault{what: topicAgain, when: "the agent is stopped meanwhile", does: "positions belong to the topic's id: nothing of the new topic is read", code: 7, says: "topic recreated"},
		fault{what: newPartition, when: "in mid replay", does: "it is read from its first offset and belongs to the replay"},
		fault{what: newPartition, when: "while following", does: "it is read from its first offset; the history notes that keys may have moved"},
		fault{what: transacted, when: "three in ten are aborted", does: "what was aborted is in no table"},
		fault{what: transacted, when: "the last offset of the log is a marker", does: "positions go by offsets, not by records: it is caught up"},
		fault{what: transacted, when: "one stays open, records pile up behind it", does: "`status` has both numbers; a candidate is not caught up", code: 4, says: "held back by an open transaction"},
		fault{what: transacted, when: "the open one is aborted", does: "the candidate goes on by itself, without what was aborted"},
		fault{what: recordsGone, when: "while following", does: "the partition stands still until `resume --accept-gap` names the very range; live goes on being served", code: 7, says: "gone"},
		fault{what: recordsGone, when: "in mid replay", does: "the replay stops there; the live version is not touched", code: 7, says: "--accept-gap"},
		fault{what: recordsGone, when: "retention overtakes a slow replay", does: "the replay stops there; the live version is not touched", code: 7, says: "--accept-gap"},
		fault{what: unusable, when: "the brokers' port is open and silent", does: "the command ends within its bounds", code: 11, says: "no answer in"},
		fault{what: unusable, when: "PostgreSQL's port is open and silent", does: "the command ends within its bounds", code: 11, says: "no answer within the connect timeout"},
		fault{what: unusable, when: "an agent starts and PostgreSQL's port is open and silent", does: "it ends: a service manager starts it again", code: 11, says: "no answer within the connect timeout"},
		fault{what: unusable, when: "nothing listens where the brokers should be", does: "the command ends at once", code: 11, says: "connection refused"},
		fault{what: unusable, when: "nothing listens where PostgreSQL should be", does: "the command ends at once", code: 11, says: "connection refused"},
		fault{what: unusable, when: "the topic does not exist", does: "the command ends at once; nothing is staged", code: 2, says: "does not exist"},
		fault{what: unusable, when: "no agent is alive", does: "nothing is written", code: 11, says: "no agent"},
		fault{what: unusable, when: "the password for the brokers is wrong", does: "it is said once, and not sent again and again", code: 11, says: "wrong user or password"},
	)
}
