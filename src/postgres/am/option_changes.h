// ALTER INDEX ... SET refuses options that the index could not be built with. PostgreSQL does not tell amoptions the
// index, so options are checked again, with the index's column, when its catalog row was changed. ALTER TABLE refuses a
// type that the index of a column could not be built for, also where it would keep the index as it is.
#pragma once

namespace pgwarp
{

// Install the hook.
void init_option_changes();

}  // namespace pgwarp
