package policy

import (
	"crypto/sha256"
	"encoding/binary"
)

// Million is the whole of the weights of a run: weights are kept in parts per million.
const Million = 1_000_000

// Bucket is the place of a subject in [0, Million): the first four bytes of sha256(salt ":" subject), scaled. The SQL
// function that readers call computes the same (abtest/route).
func Bucket(salt, subject string) int {
	sum := sha256.Sum256([]byte(salt + ":" + subject))
	return int(uint64(binary.BigEndian.Uint32(sum[:4])) * Million >> 32)
}

// ArmSalt is the salt of a run's split between arms.
func ArmSalt(job, run string) string { return job + ":" + run }

// GateSalt is the salt of a run's coverage gate. It differs from ArmSalt, so that who is enrolled does not depend on
// the arm.
func GateSalt(job, run string) string { return job + ":" + run + ":gate" }

// Cuts are the upper ends of the arms' intervals in [0, Million), in the order of the arms.
func Cuts(ppm []int) []int {
	out, sum := make([]int, len(ppm)), 0
	for i, w := range ppm {
		sum += w
		out[i] = sum
	}
	return out
}

// ArmOf is the index of the arm whose interval holds the bucket. The control has the left interval: with two arms a
// change of weights moves only the difference, and only one way.
func ArmOf(cuts []int, bucket int) int {
	for i, cut := range cuts {
		if cut > bucket {
			return i
		}
	}
	return len(cuts) - 1
}
