// ambuildempty, by the functions that also write a built index.
#include "postgres/am/buildempty.h"

#include "postgres/am/index_options.h"
#include "postgres/storage/build_pages.h"

namespace pgwarp
{

void pgwarp_ambuildempty(Relation index)
{
    const IndexShape shape = index_shape(index);
    IndexWriter* writer = begin_index(index, INIT_FORKNUM, shape);
    const Calibration none;
    UnplacedSort* no_rows = begin_unplaced_sort(work_mem, 0, nullptr);
    finish_index(writer, 0, index_build_options(index, shape), none, no_rows);
    end_unplaced_sort(no_rows);
}

}  // namespace pgwarp
