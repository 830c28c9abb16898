// Paths of KnnFilters whose scan searches among the rows of a bitmap of other indexes (executor/knn_bitmap.h).
#pragma once

namespace pgwarp
{

// Installs the planner's hook. Called by _PG_init, after init_knn_filter().
void init_knn_bitmap();

}  // namespace pgwarp
