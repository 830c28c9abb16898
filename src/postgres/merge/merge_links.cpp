// Arrays of a method whose rows are linked. When a merge adds rows or drops dead ones, links of other rows change too.
// The engine returns the links of the new rows and the changes of the others. When the changes are many, or rows get
// other numbers, it returns the links of all rows.
#include "postgres/merge/merge_run.h"

namespace pgwarp
{

namespace
{

const char* links_array(const MergeRun* merge)
{
    return array_name(*merge->method, ArrayRole::links);
}

const char* changes_array(const MergeRun* merge)
{
    return array_name(*merge->method, ArrayRole::link_changes);
}

// Whether the engine returned the links of all rows.
bool links_are_whole(const MergeRun* merge)
{
    uint32 number = 0;
    const ArrayShape* built = find_built(merge, links_array(merge), &number);
    return built != nullptr && built->rows == merge->next.rows && built->rows != merge->new_rows();
}

}  // namespace

bool carry_links(MergeRun* merge, const StoredArray& old)
{
    uint32 number = 0;
    const ArrayShape* built = find_built(merge, old.shape.name, &number);
    if (strcmp(old.shape.name, links_array(merge)) == 0) {
        if (!links_are_whole(merge)) return false;
        add_built_array(merge, number, *built);
        return true;
    }
    if (strcmp(old.shape.name, changes_array(merge)) != 0) return false;
    if (links_are_whole(merge)) return true;  // the changes are applied in them
    if (built == nullptr) {
        add_array(merge, old);
        return true;
    }
    ArrayWriter* writer = begin_append(&merge->pages, PageKind::array, merge->next.segment_id, old, built->rows);
    copy_built_array(merge, number, *built, writer);
    add_array(merge, end_array(writer));
    return true;
}

void add_first_link_changes(MergeRun* merge)
{
    if (!merge->method->links_rows) return;
    uint32 number = 0;
    const char* changes = changes_array(merge);
    const ArrayShape* built = find_built(merge, changes, &number);
    if (built != nullptr && find_array(*merge->directory, changes) == nullptr) {
        add_built_array(merge, number, *built);
    }
}

}  // namespace pgwarp
