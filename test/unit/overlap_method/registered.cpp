// The registration of the method, in every program that this file is linked into.
#include "overlap_method/overlap.h"

namespace pgwarp::test
{

static const MethodFactory encoded_factory = [] {
    MethodFactory factory = overlap_factory();
    factory.method = encoded_overlap_method;
    return factory;
}();

static const RegisteredMethod registered(overlap_factory(), overlap_description);
static const RegisteredMethod registered_encoded(encoded_factory, encoded_overlap_description);

}  // namespace pgwarp::test
