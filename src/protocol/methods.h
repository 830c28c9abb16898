// The registry of index access methods. A method is a row here and a folder in src/methods; dispatch tables, SQL and
// settings derive from both.
#pragma once

// Name; the number that pages and messages hold; whether cuda/ has a folder for the method. Never renumber.
#define PGWARP_METHODS(ROW) \
    ROW(exact, 1, true)     \
    ROW(ivfadc, 2, true)    \
    ROW(pqtree, 3, true)    \
    ROW(graph, 4, true)     \
    ROW(matchcount, 5, true)
