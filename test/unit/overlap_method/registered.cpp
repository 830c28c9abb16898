// The registration of the method, in every program of tests that this file is linked into.
#include "overlap_method/overlap.h"

namespace pgwarp::test
{

static const RegisteredMethod registered(overlap_factory(), overlap_description);

}  // namespace pgwarp::test
