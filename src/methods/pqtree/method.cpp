// The factory of pqtree on the CPU.
#include "methods/pqtree/pqtree.h"

namespace pgwarp
{

const MethodFactory& pqtree_method()
{
    static const MethodFactory factory{.method = Method::pqtree,
                                       .make_builder = make_pqtree_builder,
                                       .make_searcher = make_pqtree_searcher,
                                       .make_merge_builder = make_pqtree_merge_builder,
                                       .make_calibrator = make_pqtree_calibrator};
    return factory;
}

}  // namespace pgwarp
