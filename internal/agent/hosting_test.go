package agent

import "testing"

func TestManyItemsAreTakenWithinFewLooksAndSharedEvenly(t *testing.T) {
	const items = 1000
	left, looks := items, 0
	limits, taken := [2]int{claimFirst, claimFirst}, [2]int{}
	for left > 0 {
		looks++
		for a := range limits { // two agents that poll in turn
			got := min(limits[a], left)
			left -= got
			taken[a] += got
			limits[a] = claimNext(limits[a], got)
		}
	}
	if looks > 12 || taken[0] > items*6/10 || taken[1] > items*6/10 {
		t.Errorf("%d items were taken in %d looks, by two agents: %v", items, looks, taken)
	}
	if n := claimNext(claimMost, claimMost-1); n != claimFirst {
		t.Errorf("after a look that found less than it could take, the next takes up to %d", n)
	}
}
