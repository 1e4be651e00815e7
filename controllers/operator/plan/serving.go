package plan

import "time"

// Patience is how long a server of an API may be away before it is registered no longer: while one is, the API server
// can't say what kinds there are, and no namespace comes to its end.
const Patience = time.Minute

// Registration is an API service of the target whose roll-out is not complete.
type Registration struct {
	Object string
	// Missing says that it isn't registered.
	Missing bool
	// Away is since when its server doesn't answer, zero while it does.
	Away time.Time
}

// The actions on registrations.
type (
	// Withdraw removes API services whose server is away.
	Withdraw struct{ Objects []string }
	// Register brings them back.
	Register struct{ Objects []string }
)

func (a Withdraw) String() string { return "withdrawing, its server being away, " + few(a.Objects) }
func (a Register) String() string { return "registering, its server being back, " + few(a.Objects) }

// registering are the actions on the registrations of an install that isn't as it should be.
func registering(now time.Time, s Seen) []Action {
	var away, back []string
	for _, r := range s.Registrations {
		switch {
		case r.Missing && s.Served:
			back = append(back, r.Object)
		case !r.Missing && !r.Away.IsZero() && now.Sub(r.Away) >= Patience:
			away = append(away, r.Object)
		}
	}
	var all []Action
	if len(away) > 0 {
		all = append(all, Withdraw{away})
	}
	if len(back) > 0 {
		all = append(all, Register{back})
	}
	return all
}
