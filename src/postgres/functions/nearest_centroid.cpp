// nearest_centroid(vector, vector[]): the position, counted from 1, of the array's element nearest to the vector.
#include "postgres/fmgr_cpp.h"
#include "postgres/types/vector.h"

#include <limits>

#include "numeric/metric.h"

extern "C" {
#include "utils/array.h"
#include "utils/lsyscache.h"
}

namespace
{

// The memory layout of an array's elements; looked up once for each call site.
struct ElementLayout {
    int16 length;
    bool by_value;
    char alignment;
};

const ElementLayout* layout_of(FunctionCallInfo fcinfo, Oid type)
{
    auto* layout = static_cast<ElementLayout*>(fcinfo->flinfo->fn_extra);
    if (layout != nullptr) return layout;
    layout = static_cast<ElementLayout*>(MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(ElementLayout)));
    get_typlenbyvalalign(type, &layout->length, &layout->by_value, &layout->alignment);
    fcinfo->flinfo->fn_extra = layout;
    return layout;
}

// Iterates over an array in place, without copying elements.
struct ElementWalk {
    char* at;
    const uint8* present;  // null when no element is NULL
    int next;
    int count;
};

ElementWalk begin_walk(ArrayType* array)
{
    const int count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
    return {ARR_DATA_PTR(array), ARR_NULLBITMAP(array), 0, count};
}

// Returns the next element; null for NULL.
const pgwarp::Vector* next_element(ElementWalk* walk, const ElementLayout* layout)
{
    const int i = walk->next++;
    if (walk->present != nullptr && (walk->present[i / 8] & (1 << (i % 8))) == 0) return nullptr;
    const Datum value = PointerGetDatum(walk->at);
    walk->at = att_addlength_pointer(walk->at, layout->length, walk->at);
    walk->at = reinterpret_cast<char*>(att_align_nominal(walk->at, layout->alignment));
    return pgwarp::datum_get_vector(value);
}

}  // namespace

PGWARP_FUNCTION(pgwarp_nearest_centroid)
{
    const pgwarp::Vector* vector = PG_GETARG_VECTOR(0);
    ArrayType* array = PG_GETARG_ARRAYTYPE_P(1);
    const ElementLayout* layout = layout_of(fcinfo, ARR_ELEMTYPE(array));
    ElementWalk walk = begin_walk(array);
    double least = std::numeric_limits<double>::infinity();
    int32 nearest = 0;
    while (walk.next < walk.count) {
        const pgwarp::Vector* centroid = next_element(&walk, layout);
        if (centroid == nullptr) continue;
        pgwarp::check_same_dims(vector, centroid);
        const double distance = pgwarp::canonical_l2_squared(vector->x, centroid->x, static_cast<size_t>(vector->dim));
        if (nearest != 0 && distance >= least) continue;
        least = distance;
        nearest = walk.next;
    }
    if (nearest == 0) PG_RETURN_NULL();
    PG_RETURN_INT32(nearest);
}
