// Shows: nothing but the cost of launching. On a timeline the bars are 1 to 2 us wide and the spaces
// between them are the host's: whoever sees long gaps between `empty` bars is launch-bound.

extern "C" __global__ void empty() {}
