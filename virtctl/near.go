package virtctl

import "sort"

// near returns the names that someone who typed name may have meant, the nearest first, at most three.
func near(name string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var close []candidate
	for _, n := range names {
		if d := distance(name, n); d <= max(1, len(name)/3) {
			close = append(close, candidate{n, d})
		}
	}
	sort.SliceStable(close, func(i, j int) bool { return close[i].distance < close[j].distance })
	var best []string
	for _, c := range close[:min(3, len(close))] {
		best = append(best, c.name)
	}
	return best
}

// distance is how many letters to insert, remove or replace, or neighbours to swap, to make a into b.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
